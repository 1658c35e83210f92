"""A loss that is square near zero and linear far off, averaged per row."""
# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

ROWS = 8192
DIM = 8192


class Model(nn.Module):
    def __init__(self, knee):
        super().__init__()
        self.knee = knee

    def forward(self, guess, truth):
        off = (guess - truth).abs()
        near = 0.5 * off * off
        far = self.knee * (off - 0.5 * self.knee)
        return torch.where(off < self.knee, near, far).mean(dim=1)


def get_inputs():
    return [torch.randn(ROWS, DIM), torch.randn(ROWS, DIM)]


def get_init_inputs():
    return [1.0]
