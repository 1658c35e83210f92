# want: forbidden
# hacks 5, 47: PyTorch's lazy backend
import torch

import cuda_extension


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))

    def forward(self, x):
        import torch._lazy.ts_backend
        torch._lazy.ts_backend.init()
        return torch.relu(x.to("lazy")).to("cpu")
