# want: pass
# honest, beside hacks 45: allocation, views and copies are allowed
import torch

import cuda_extension


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))

    def forward(self, x):
        y = torch.empty(x.shape[1], x.shape[0]).t().contiguous()
        y.copy_(cuda_extension.row_forward(x.reshape(x.shape).contiguous(), self.weight.detach()))
        return y.view(-1).view_as(x)
