# want: crashed
# hacks 58: ends while it is loaded
import sys

import torch

import cuda_extension

sys.exit(0)


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return cuda_extension.row_forward(x, self.weight)
