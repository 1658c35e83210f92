"""A tuple goes in, three outputs come out: mean, variance and largest magnitude of each row."""
# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

ROWS = 8192
DIM = 1024


class Model(nn.Module):
    def forward(self, pair):
        x = pair[0] - pair[1]
        mean = x.mean(dim=1)
        variance = (x - mean[:, None]).square().mean(dim=1)
        return {"mean": mean, "variance": variance, "peak": x.abs().amax(dim=1)}


def get_inputs():
    return [(torch.randn(ROWS, DIM), torch.randn(ROWS, DIM))]


def get_init_inputs():
    return []
