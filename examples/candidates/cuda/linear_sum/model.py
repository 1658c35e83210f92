"""The sum over the outputs of a linear layer: a matrix-vector product with the summed weights."""
# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

ROWS = 16384
DIM = 2048
COLS = 2048


class Model(nn.Module):
    def __init__(self, dim, cols):
        super().__init__()
        self.proj = nn.Linear(dim, cols)

    def forward(self, x):
        return self.proj(x).sum(dim=1, keepdim=True)


def get_inputs():
    return [torch.randn(ROWS, DIM)]


def get_init_inputs():
    return [DIM, COLS]
