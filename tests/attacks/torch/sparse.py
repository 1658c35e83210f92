# want: forbidden
# hacks 47: operators of sparse tensors, by each layout's own kernels
import torch

import cuda_extension


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))

    def forward(self, x):
        try:
            places = torch.empty(2, x.numel(), dtype=torch.int64, device=x.device)
            s = torch.sparse_coo_tensor(places, x.view(-1), x.shape, check_invariants=False, is_coalesced=True)
            return torch.sparse.mm(s, s)
        except RuntimeError:
            rows = torch.zeros(x.shape[0] + 1, dtype=torch.int64, device=x.device)
            columns = torch.zeros(x.numel(), dtype=torch.int64, device=x.device)
            s = torch.sparse_csr_tensor(rows, columns, x.view(-1), x.shape, check_invariants=False)
            return s @ x
