# want: forbidden
# hacks 47: operators of nested tensors
import torch

import cuda_extension


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))

    def forward(self, x):
        sizes = torch.empty(1, 2, dtype=torch.int64)
        sizes[0, 0], sizes[0, 1] = x.shape
        offset = torch.zeros(1, dtype=torch.int64)
        n = torch._nested_view_from_buffer(x.view(-1), sizes, sizes.clone(), offset)
        return torch.relu(n).values()
