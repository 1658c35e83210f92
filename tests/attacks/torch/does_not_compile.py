# want: compile_error
# fault: a binding that does not compile
import torch

import cuda_extension


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return cuda_extension.row_forward(x, self.weight)
