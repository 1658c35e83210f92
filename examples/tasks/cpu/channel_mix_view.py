"""A transposed, non-contiguous input and a weighted mix of its rows."""
# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

B = 128
T = 256
C = 256


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(channels) / channels ** 0.5)

    def forward(self, x):
        return (torch.exp(-x.square()) * self.weight[None, :, None]).sum(dim=1)


def get_inputs():
    return [torch.randn(B, T, C).transpose(1, 2)]


def get_init_inputs():
    return [C]
