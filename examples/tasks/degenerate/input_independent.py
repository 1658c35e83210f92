"""The input is read and plays no part: a softmax over one element is always one."""
# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

ROWS = 1024
DIM = 4096


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(dim))

    def forward(self, x):
        one = torch.softmax(x.mean(dim=1, keepdim=True), dim=1)
        return one * torch.tanh(self.weight)


def get_inputs():
    return [torch.randn(ROWS, DIM)]


def get_init_inputs():
    return [DIM]
