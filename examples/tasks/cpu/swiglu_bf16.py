"""SiLU of one tensor times another, in bfloat16."""
# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 8192
DIM = 2048


class Model(nn.Module):
    def forward(self, gate, value):
        return F.silu(gate) * value


def get_inputs():
    shape = (ROWS, DIM)
    return [torch.randn(shape, dtype=torch.bfloat16), torch.randn(shape, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
