"""Batch norm with running statistics and ReLU over images."""
# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

B = 40
C = 64
SIDE = 64


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)
        self.norm.running_mean.normal_()
        self.norm.running_var.uniform_(0.5, 2.0)

    def forward(self, x):
        return torch.relu(self.norm(x))


def get_inputs():
    return [torch.randn(B, C, SIDE, SIDE)]


def get_init_inputs():
    return [C]
