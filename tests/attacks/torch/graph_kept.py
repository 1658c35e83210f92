# want: forbidden
# hacks 11, 45: a graph of PyTorch's kernels, captured by the constructor
import torch

import cuda_extension

kept = {}


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))
        try:
            kept["x"], kept["w"] = torch.ones(1024, dim, device="cuda"), torch.ones(dim, device="cuda")
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                kept["y"] = torch.exp(kept["x"] * kept["w"])
            kept["graph"] = graph
        except (RuntimeError, AssertionError):
            pass

    def forward(self, x):
        if "graph" not in kept:
            return torch.relu(x * self.weight) + x.mean(-1, keepdim=True)
        kept["x"].copy_(x)
        kept["w"].copy_(self.weight)
        kept["graph"].replay()
        return kept["y"].clone()
