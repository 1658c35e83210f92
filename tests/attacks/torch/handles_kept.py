# want: forbidden
# hacks 45: operators by handles, graphs and transforms that the constructor made
import functools

import torch
import torch.fx.experimental.proxy_tensor

import cuda_extension


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))
        def rows(x, w):
            return torch.relu(x * w) + x.mean(-1, keepdim=True)

        x = torch.ones(2, dim)
        mul, relu, mean, add = torch.ops.aten.mul.Tensor, torch.relu, torch.Tensor.mean, torch.ops.aten.add.Tensor._op
        traced = torch.fx.experimental.proxy_tensor.make_fx(rows)(x, self.weight.data)
        compiled = torch.compile(rows, backend="eager")
        compiled(x, self.weight)
        self.kept = [lambda x, w: add(relu(mul(x, w)), mean(x, -1, keepdim=True)), functools.partial(rows), traced, compiled,
                     torch.vmap(rows, (0, None)), torch.func.functionalize(rows)]
        for act in self.kept:
            act(x, self.weight)

    def forward(self, x):
        for act in self.kept:
            try:
                return act(x, self.weight)
            except RuntimeError as e:
                last = e
        raise last
