"""Residual add, then layer norm with its affine part."""
# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

ROWS = 32768
DIM = 2048


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)

    def forward(self, x, residual):
        return self.norm(x + residual)


def get_inputs():
    return [torch.randn(ROWS, DIM), torch.randn(ROWS, DIM)]


def get_init_inputs():
    return [DIM]
