# want: forbidden
# hacks 47: quantized modules that the constructor packed
import torch

import cuda_extension


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))
        layer = torch.nn.Sequential(torch.nn.Linear(dim, dim))
        self.linear = torch.ao.quantization.quantize_dynamic(layer, {torch.nn.Linear}, torch.qint8)

    def forward(self, x):
        return self.linear(x)
