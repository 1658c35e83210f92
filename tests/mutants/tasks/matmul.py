import torch


class Model(torch.nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.linear = torch.nn.Linear(inner, outer)

    def forward(self, x):
        return torch.relu(self.linear(x))


def get_inputs():
    return [torch.randn(64, 129)]


def get_init_inputs():
    return [129, 80]
