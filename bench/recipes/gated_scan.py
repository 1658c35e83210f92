import torch
from torch import nn


class Model(nn.Module):
    """y_t = g_t y_(t-1) + x_t by doubling: after k rounds a step holds the 2^k steps that end with it."""

    def forward(self, g, x):
        gate, y, reach = g, x, 1
        while reach < x.shape[-1]:
            y = torch.cat([y[:, :reach], y[:, reach:] + gate[:, reach:] * y[:, :-reach]], dim=-1)
            gate = torch.cat([gate[:, :reach], gate[:, reach:] * gate[:, :-reach]], dim=-1)
            reach *= 2
        return y


def get_inputs():
    return [torch.rand(4096, 4096), torch.randn(4096, 4096)]


def get_init_inputs():
    return []
