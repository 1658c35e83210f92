"""The output is the same for every input: a product with zero plus one."""
# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

ROWS = 1024
DIM = 4096


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1).sum(dim=-1, keepdim=True) * 0.0 + 1.0


def get_inputs():
    return [torch.randn(ROWS, DIM)]


def get_init_inputs():
    return []
