"""The task of the exam's own rows: small, with a weight and a row mean. 16384 x 4096 for a device."""
import torch


class Model(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return torch.relu(x * self.weight) + x.mean(-1, keepdim=True)


def get_inputs():
    return [torch.randn(16384, 4096)]


def get_init_inputs():
    return [4096]
