"""A 3x3 convolution without bias, batch norm and ReLU: the norm folds into the weights."""
# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

B = 32
C = 32
OUT = 64
SIDE = 48


class Model(nn.Module):
    def __init__(self, channels, out):
        super().__init__()
        self.conv = nn.Conv2d(channels, out, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(out)
        self.norm.running_mean.normal_(std=0.1)
        self.norm.running_var.uniform_(0.5, 2.0)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)))


def get_inputs():
    return [torch.randn(B, C, SIDE, SIDE)]


def get_init_inputs():
    return [C, OUT]
