# want: forbidden
# hacks 47: torch.jit and its relatives, compiled by the constructor
import io

import torch

import cuda_extension

text = """
def rows(x, w):
    return torch.relu(x * w) + x.mean(-1, True)
"""


def rows(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.relu(x * w) + x.mean(-1, True)


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))
        x = torch.ones(2, dim)
        ways = [lambda: torch.jit.script(rows), lambda: torch.jit.trace(rows, (x, x)), lambda: torch.jit.CompilationUnit(text).rows,
                lambda: torch._C._jit_to_static_module(torch._C.parse_ir("graph(%a):\n return (%a)")),
                lambda: torch._C._create_function_from_graph("f", torch._C.parse_ir("graph(%a):\n return (%a)")),
                lambda: type("T", (torch._C.CompilationUnit,), {})().define(text, None),
                lambda: torch.jit.load(io.BytesIO(b"")), lambda: torch._C._te.VarHandle("i", torch._C._te.Dtype.Int)]
        self.kept = []
        for way in ways:
            try:
                self.kept.append(way())
            except (RuntimeError, OSError):
                pass
        assert not self.kept, "compiled"

    def forward(self, x):
        for act in self.kept:
            act(x, self.weight)
        return torch.relu(x * self.weight) + x.mean(-1, keepdim=True)
