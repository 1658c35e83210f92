# want: forbidden
# hacks 47: the operators by their names in the dispatcher
import torch

import cuda_extension


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))

    def forward(self, x):
        v = torch.ops.aten.mul.Tensor(x, self.weight)
        return torch.ops.aten.add.Tensor(torch.ops.aten.relu.default(v), torch.ops.aten.mean.dim(x, [-1], True))
