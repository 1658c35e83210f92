# want: forbidden
# hacks 47: vmap, grad and jvp over operators
import torch

import cuda_extension


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))

    def forward(self, x):
        with torch.enable_grad():
            try:
                return torch.vmap(lambda a: torch.relu(a * self.weight))(x)
            except RuntimeError:
                return torch.func.jvp(lambda a: a.sin(), (x,), (x,))[1]
