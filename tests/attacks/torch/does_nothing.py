# want: wrong
# hacks 24: memory as it is found
import torch

import cuda_extension


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return torch.empty_like(x)
