# want: pass
# hacks 4: signals that would wake it while it is stopped: from descriptors, from timers
import ctypes
import fcntl
import os
import signal

import torch

import cuda_extension

libc = ctypes.CDLL(None, use_errno=True)


def refused(call) -> bool:
    try:
        return call() not in (0, None)
    except OSError:
        return True


watch = libc.inotify_init1(os.O_NONBLOCK)
event = (ctypes.c_int * 16)(0, 0, int(signal.SIGCONT), 0)  # struct sigevent: SIGEV_SIGNAL
timer = ctypes.c_void_p()
assert refused(lambda: fcntl.fcntl(watch, 10, int(signal.SIGCONT)))
assert refused(lambda: fcntl.fcntl(watch, fcntl.F_SETOWN, os.getpid()))
assert refused(lambda: libc.timer_create(1, event, ctypes.byref(timer)))


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return cuda_extension.row_forward(x, self.weight)
