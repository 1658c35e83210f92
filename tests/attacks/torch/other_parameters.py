# want: crashed
# fault: keeps its weights under another name
import torch

import cuda_extension


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return cuda_extension.row_forward(x, self.w)
