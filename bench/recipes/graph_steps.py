import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, steps, rate):
        super().__init__()
        self.steps, self.rate = steps, rate

    def forward(self, u):
        for _ in range(self.steps):
            near = torch.roll(u, 1, 0) + torch.roll(u, -1, 0) + torch.roll(u, 1, 1) + torch.roll(u, -1, 1)
            u = u + self.rate * (near - 4 * u)
        return u


def get_inputs():
    return [torch.randn(1024, 1024)]


def get_init_inputs():
    return [64, 0.1]
