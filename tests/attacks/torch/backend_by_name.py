# want: forbidden
# hacks 47: the backend's functions by their names, past the dispatcher
import ctypes

import torch

import cuda_extension


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))

    def forward(self, x):
        relu = ctypes.CDLL(None)["_ZN2at3cpu4reluERKNS_6TensorE"]
        relu(ctypes.byref(ctypes.c_void_p()), ctypes.byref(ctypes.c_void_p(x._cdata)))
        return x
