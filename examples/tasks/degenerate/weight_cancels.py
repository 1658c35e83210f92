"""The weights are multiplied in and divided out: the answer for other weights is the same."""
# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

ROWS = 4096
DIM = 1024


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(dim) + 0.5)

    def forward(self, x):
        return torch.tanh(x) * self.scale / self.scale


def get_inputs():
    return [torch.randn(ROWS, DIM)]


def get_init_inputs():
    return [DIM]
