"""A gated mish and its root-mean-square norm: ten steps, each over all of the data."""
# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

ROWS = 2048
DIM = 1024


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(dim) + 0.5)

    def forward(self, x, gate):
        h = x * torch.tanh(nn.functional.softplus(x)) * gate
        return h * torch.rsqrt(h.pow(2).mean(dim=-1, keepdim=True) + 1e-6) * self.weight


def get_inputs():
    return [torch.randn(ROWS, DIM), torch.randn(ROWS, DIM)]


def get_init_inputs():
    return [DIM]
