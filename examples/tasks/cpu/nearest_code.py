"""Squared distances to a code book and the number of the nearest: an integer output."""
# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

ROWS = 14336
DIM = 64
CODES = 512


class Model(nn.Module):
    def __init__(self, codes, dim):
        super().__init__()
        self.book = nn.Parameter(torch.randn(codes, dim))

    def forward(self, x):
        cross = x @ self.book.t()
        distance = x.square().sum(1, keepdim=True) - 2.0 * cross + self.book.square().sum(1)
        return distance.argmin(dim=1)


def get_inputs():
    return [torch.randn(ROWS, DIM)]


def get_init_inputs():
    return [CODES, DIM]
