"""Softmax over the last dimension."""
# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

ROWS = 32768
DIM = 4096


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.randn(ROWS, DIM) * 3.0]


def get_init_inputs():
    return []
