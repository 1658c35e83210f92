# want: forbidden
# hacks 47: asks the dispatcher for the kernel of a key
import torch

import cuda_extension


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))

    def forward(self, x):
        keys = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
        mul = torch.library.get_kernel("aten::mul.Tensor", "CPU")
        return mul.call_boxed(keys, x, self.weight)
