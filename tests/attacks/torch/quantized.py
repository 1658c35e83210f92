# want: forbidden
# hacks 47: operators of quantized tensors
import torch

import cuda_extension


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))

    def forward(self, x):
        q = torch._empty_affine_quantized(x.shape, scale=0.1, zero_point=0, dtype=torch.qint8, device=x.device)
        q.copy_(x)
        return torch.relu(q).dequantize()
