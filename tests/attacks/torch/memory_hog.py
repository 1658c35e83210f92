# want: crashed timeout
# hacks 58: all memory
import torch

import cuda_extension


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))

    def forward(self, x):
        hold = [bytearray(1 << 30) for _ in range(1000)]
        return cuda_extension.row_forward(x, self.weight)
