"""Split in two halves along the features, gate one with the sigmoid of the other."""
# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

ROWS = 32768
DIM = 4096


class Model(nn.Module):
    def forward(self, x, bias):
        a, b = (x + bias).chunk(2, dim=-1)
        return a * torch.sigmoid(b)


def get_inputs():
    return [torch.randn(ROWS, DIM), torch.randn(DIM)]


def get_init_inputs():
    return []
