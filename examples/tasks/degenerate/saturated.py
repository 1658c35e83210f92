"""A sum of a thousand squares through a sigmoid: one to the last bit on every input that is drawn."""
# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

ROWS = 4096
DIM = 1024


class Model(nn.Module):
    def forward(self, x):
        return torch.sigmoid(x.square().sum(dim=1))


def get_inputs():
    return [torch.randn(ROWS, DIM)]


def get_init_inputs():
    return []
