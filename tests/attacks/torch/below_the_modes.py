# want: forbidden
# hacks 47: below dispatch modes and torch functions
import torch

import cuda_extension


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))

    def forward(self, x):
        with torch._C._DisableTorchDispatch(), torch._C.DisableTorchFunction(), torch._C._AutoDispatchBelowAutograd():
            return torch.relu(x * self.weight) + x.mean(-1, keepdim=True)
