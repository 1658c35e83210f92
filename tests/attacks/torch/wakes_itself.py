# want: pass
# hacks 4: signals that would wake it while it is stopped: from descriptors, from timers
import fcntl
import os
import signal

import torch

import cuda_extension


def refused(call) -> bool:
    try:
        call()
    except OSError:
        return True
    return False


event = os.eventfd(0)
assert refused(lambda: fcntl.fcntl(event, 10, int(signal.SIGCONT)))
assert refused(lambda: fcntl.fcntl(event, fcntl.F_SETOWN, os.getpid()))
assert torch.cuda.is_available() or refused(lambda: signal.setitimer(signal.ITIMER_REAL, 1))


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return cuda_extension.row_forward(x, self.weight)
