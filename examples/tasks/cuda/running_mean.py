"""A running mean along time: a scan."""
# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

ROWS = 8192
T = 8192


class Model(nn.Module):
    def __init__(self, steps):
        super().__init__()
        self.register_buffer("count", torch.arange(1, steps + 1).float())

    def forward(self, x):
        return torch.cumsum(x, dim=1) / self.count


def get_inputs():
    return [torch.randn(ROWS, T)]


def get_init_inputs():
    return [T]
