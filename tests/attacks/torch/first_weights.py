# want: wrong
# hacks 10: weights of the first load, kept outside of the model
import torch

import cuda_extension

packed = []


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))

    def forward(self, x):
        if not packed:
            packed.append(self.weight.clone())
        return cuda_extension.row_forward(x, packed[0])
