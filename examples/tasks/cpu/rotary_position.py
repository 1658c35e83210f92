"""Rotate pairs of features by an angle that grows with the position: buffers, strided halves."""
# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

B = 12
H = 8
T = 512
D = 128


class Model(nn.Module):
    def __init__(self, steps, width):
        super().__init__()
        rate = 10000.0 ** (-torch.arange(0, width, 2).float() / width)
        angle = torch.arange(steps).float()[:, None] * rate[None, :]
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())

    def forward(self, x):
        left, right = x.chunk(2, dim=-1)
        return torch.cat((left * self.cos - right * self.sin, right * self.cos + left * self.sin), dim=-1)


def get_inputs():
    return [torch.randn(B, H, T, D)]


def get_init_inputs():
    return [T, D]
