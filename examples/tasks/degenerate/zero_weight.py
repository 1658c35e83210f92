"""A branch that a constant weight of zero switches off: nothing of it reaches the output."""
# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

ROWS = 1024
DIM = 512


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("gamma", torch.zeros(dim))
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        return self.gamma * self.proj(x)


def get_inputs():
    return [torch.randn(ROWS, DIM)]


def get_init_inputs():
    return [DIM]
