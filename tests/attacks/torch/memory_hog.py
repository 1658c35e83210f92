# want: crashed timeout
# hacks 58: all memory, until the first of its two limits
import mmap

import torch

import cuda_extension


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))

    def forward(self, x):
        everywhere = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE  # without a fault for each page
        hold = [mmap.mmap(-1, 1 << 30, flags=everywhere) for _ in range(1000)]
        return cuda_extension.row_forward(x, self.weight)
