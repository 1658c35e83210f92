"""Attention-like softmax under a boolean mask."""
# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

B = 24
H = 8
T = 256


class Model(nn.Module):
    def forward(self, scores, keep):
        scores = scores.masked_fill(~keep[:, None, None, :], -1e9)
        return torch.softmax(scores, dim=-1)


def get_inputs():
    keep = torch.rand(B, T) > 0.3
    keep[:, 0] = True
    return [torch.randn(B, H, T, T), keep]


def get_init_inputs():
    return []
