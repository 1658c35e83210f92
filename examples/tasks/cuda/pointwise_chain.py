"""Five pointwise steps over one large tensor: eager reads and writes it once a step."""
# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

ROWS = 16384
DIM = 4096


class Model(nn.Module):
    def forward(self, x):
        y = torch.tanh(x * 0.7 + 0.1)
        return y * torch.sigmoid(x) - 0.25 * x


def get_inputs():
    return [torch.randn(ROWS, DIM)]


def get_init_inputs():
    return []
