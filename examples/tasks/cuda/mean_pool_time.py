"""Mean over time, then a scale per channel: much read, little written."""
# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

B = 256
T = 1024
C = 1024


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(channels))

    def forward(self, x):
        return torch.relu(x).mean(dim=1) * self.gain


def get_inputs():
    return [torch.randn(B, T, C)]


def get_init_inputs():
    return [C]
