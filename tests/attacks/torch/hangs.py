# want: timeout
# hacks 58: never comes back
import torch

import cuda_extension


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))

    def forward(self, x):
        while True:
            pass
