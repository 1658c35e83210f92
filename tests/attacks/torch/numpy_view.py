# want: crashed
# hacks 48: another library's view of the memory
import torch

import cuda_extension


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))

    def forward(self, x):
        a = x.cpu().numpy()
        return torch.from_numpy(a * a)
