# want: pass
# hacks 9: notes for the next process, in files and in what it was forked from
import os

import torch

import cuda_extension

first = [False]
note = os.environ["TMPDIR"] + "/note"
assert not os.path.exists(note)


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))

    def forward(self, x):
        seen = os.path.exists(note) or hasattr(torch, "note")
        open(note, "w").write("1")
        torch.note = True
        self.calls = getattr(self, "calls", 0) + 1
        assert self.calls > 1 or not seen or first[0]
        first[0] = True
        return cuda_extension.row_forward(x, self.weight)
