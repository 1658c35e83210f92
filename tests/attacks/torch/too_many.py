# want: crashed
# hacks 40: more answers than wanted
import torch

import cuda_extension


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))

    def forward(self, x):
        y = cuda_extension.row_forward(x, self.weight)
        return y, y
