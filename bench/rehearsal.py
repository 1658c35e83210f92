"""What bench_rehearse grades: a row norm of some milliseconds on a cpu core, of some microseconds on a device."""
import torch


class Model(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return torch.tanh(x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight)


def get_inputs():
    return [torch.randn(2048, 1536)]


def get_init_inputs():
    return [1536]
