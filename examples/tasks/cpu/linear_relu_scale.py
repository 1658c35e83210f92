"""Linear with bias, ReLU, and a learned scale per column."""
# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

ROWS = 4096
DIM = 512
COLS = 1024


class Model(nn.Module):
    def __init__(self, dim, cols):
        super().__init__()
        self.proj = nn.Linear(dim, cols)
        self.scale = nn.Parameter(torch.full((cols,), 0.5))

    def forward(self, x):
        return torch.relu(self.proj(x)) * self.scale


def get_inputs():
    return [torch.randn(ROWS, DIM)]


def get_init_inputs():
    return [DIM, COLS]
