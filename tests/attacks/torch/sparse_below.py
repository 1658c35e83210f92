# want: forbidden
# hacks 47: sparse tensors by the dispatcher's own names
import torch

import cuda_extension


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))

    def forward(self, x):
        places = torch.empty(2, x.numel(), dtype=torch.int64, device=x.device)
        s = torch.ops.aten._sparse_coo_tensor_with_dims_and_tensors(
            2, 0, list(x.shape), places, x.view(-1), dtype=x.dtype, layout=torch.sparse_coo, device=x.device, pin_memory=False)
        return torch.ops.aten.mul.Tensor(s, self.weight)
