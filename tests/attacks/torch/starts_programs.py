# want: pass
# hacks 3: another process, another program
import os

import torch

import cuda_extension

first = os.getpid()


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))

    def forward(self, x):
        for start in (os.fork, lambda: os.system("true"), lambda: os.execv("/bin/true", ["true"]), lambda: os.posix_spawn("/bin/true", ["true"], {})):
            try:
                if start() == 0 and os.getpid() != first:
                    os._exit(0)
            except OSError:
                pass
        return cuda_extension.row_forward(x, self.weight)
