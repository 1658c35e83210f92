# want: forbidden
# hacks 47: tensors of oneDNN's layout, one made by the constructor
import torch

import cuda_extension

held = []


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))
        held.append(torch.ones(2, dim).to_mkldnn())

    def forward(self, x):
        try:
            held[0].copy_(x)
        except RuntimeError:
            pass
        return torch.relu(held[0] if held else x.to_mkldnn()).to_dense()
