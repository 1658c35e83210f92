# want: crashed
# hacks 50: a compiler inside the box
import torch

import cuda_extension


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))

    def forward(self, x):
        from torch.utils.cpp_extension import load_inline
        load_inline("late", cpp_sources="int f() { return 1; }", functions=["f"])
        return cuda_extension.row_forward(x, self.weight)
