import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(333, dtype=torch.bfloat16))

    def forward(self, x, z):
        return torch.nn.functional.silu(x * self.weight) + z


def get_inputs():
    return [torch.randn(64, 333, dtype=torch.bfloat16), torch.randn(64, 333, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
