"""Layer norm and a linear layer in bfloat16."""
# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

ROWS = 8192
DIM = 2048
COLS = 2048


class Model(nn.Module):
    def __init__(self, dim, cols):
        super().__init__()
        self.norm = nn.LayerNorm(dim, dtype=torch.bfloat16)
        self.proj = nn.Linear(dim, cols, dtype=torch.bfloat16)

    def forward(self, x):
        return self.proj(self.norm(x))


def get_inputs():
    return [torch.randn(ROWS, DIM, dtype=torch.bfloat16)]


def get_init_inputs():
    return [DIM, COLS]
