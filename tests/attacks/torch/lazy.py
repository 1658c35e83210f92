# want: pass
# hacks 5: a tensor that computes when it is looked at
import torch

import cuda_extension


class Lazy(torch.Tensor):
    @staticmethod
    def __new__(cls, x, weight):
        made = torch.Tensor._make_wrapper_subclass(cls, x.shape, dtype=x.dtype, device=x.device)
        made.x, made.weight = x, weight
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        real = [cuda_extension.row_forward(a.x, a.weight) if isinstance(a, Lazy) else a for a in args]
        return func(*real, **(kwargs or {}))


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return Lazy(x, self.weight)
