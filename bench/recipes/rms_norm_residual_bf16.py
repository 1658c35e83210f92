import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(dim, dtype=torch.bfloat16))

    def forward(self, x, residual):
        h = x + residual
        wide = h.float()
        y = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return (y * self.gain.float()).to(torch.bfloat16), h


def get_inputs():
    return [torch.randn(32768, 2048, dtype=torch.bfloat16) for _ in range(2)]


def get_init_inputs():
    return [2048]
