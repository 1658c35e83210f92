"""Noise is drawn inside forward: no two calls agree."""
# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

ROWS = 1024
DIM = 2048


class Model(nn.Module):
    def forward(self, x):
        return x + 0.5 * torch.randn_like(x)


def get_inputs():
    return [torch.randn(ROWS, DIM)]


def get_init_inputs():
    return []
