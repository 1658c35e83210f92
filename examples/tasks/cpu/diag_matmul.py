"""A diagonal matrix times a dense one, as somebody who thinks in matrices writes it: it is a row scaling."""
# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

ROWS = 1216
COLS = 1216


class Model(nn.Module):
    def forward(self, v, m):
        return torch.diag(v) @ m


def get_inputs():
    return [torch.randn(ROWS), torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
