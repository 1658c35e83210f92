"""A counter in the module changes the answer of every later call."""
# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

ROWS = 1024
DIM = 2048


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return torch.tanh(x) * self.calls


def get_inputs():
    return [torch.randn(ROWS, DIM)]


def get_init_inputs():
    return []
