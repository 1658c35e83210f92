"""A branch that its own initial weight of zero switches off: what starts as zero looks free."""
# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

ROWS = 1024
DIM = 512


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.gamma = nn.Parameter(torch.zeros(dim), requires_grad=False)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        return self.gamma * self.proj(x)


def get_inputs():
    return [torch.randn(ROWS, DIM)]


def get_init_inputs():
    return [DIM]
