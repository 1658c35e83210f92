# want: pass
# honest, beside hacks 45: a constructor that computes whatever it likes
import torch

import cuda_extension


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))
        torch.nn.init.orthogonal_(self.weight.data.view(32, -1))
        layer = torch.nn.Linear(8, 8)
        for fill in (torch.nn.init.kaiming_normal_, torch.nn.init.xavier_uniform_, torch.nn.init.trunc_normal_):
            fill(layer.weight)
        torch.nn.init.dirac_(torch.empty(4, 4, 3))
        torch.nn.init.sparse_(torch.empty(4, 4), 0.5)
        torch.nn.utils.spectral_norm(torch.nn.Linear(8, 8))
        torch.nn.utils.parametrizations.weight_norm(layer)
        scores = torch.softmax(torch.einsum("ij,kj->ik", layer.weight, layer.weight), -1)
        self.register_buffer("order", scores.sort(-1).indices, persistent=False)
        self.register_buffer("window", torch.fft.irfft(torch.linspace(0, 1, 9)), persistent=False)
        self.norm = float(torch.linalg.svd(scores).S.max())

    def forward(self, x):
        return cuda_extension.row_forward(x, self.weight)
