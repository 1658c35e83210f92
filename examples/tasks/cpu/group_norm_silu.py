"""Group norm with SiLU over feature maps."""
# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn
import torch.nn.functional as F

B = 96
C = 128
SIDE = 32
GROUPS = 16


class Model(nn.Module):
    def __init__(self, groups, channels):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)

    def forward(self, x):
        return F.silu(self.norm(x))


def get_inputs():
    return [torch.randn(B, C, SIDE, SIDE)]


def get_init_inputs():
    return [GROUPS, C]
