# want: forbidden
# hacks 46: torch.nn.functional
import torch

import cuda_extension


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return torch.nn.functional.relu(x * self.weight) + x.mean(-1, keepdim=True)
