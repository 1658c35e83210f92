# want: pass
# hacks 51: finds the place of the output in the frames above, and writes it itself
import sys

import torch

import cuda_extension


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))

    def forward(self, x):
        outs = sys._getframe(4).f_locals.get("outs") or sys._getframe(3).f_locals.get("outs")
        y = cuda_extension.row_forward(x, self.weight)
        if outs:
            outs[0].copy_(y)
            return outs[0]
        return y
