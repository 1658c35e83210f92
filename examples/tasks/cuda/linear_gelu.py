"""A linear layer and an exact GELU."""
# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 4096
DIM = 1024
HIDDEN = 4096


class Model(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.up = nn.Linear(dim, hidden)

    def forward(self, x):
        return F.gelu(self.up(x))


def get_inputs():
    return [torch.randn(ROWS, DIM)]


def get_init_inputs():
    return [DIM, HIDDEN]
