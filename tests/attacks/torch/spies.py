# want: pass
# hacks 54: files, other processes, the network, its own server
import os
import socket

import torch

import cuda_extension


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))

    def forward(self, x):
        for path in ("/proc/1/environ", "/etc/shadow", "/root", "/proc/self/root/root", "/sys/fs/cgroup"):
            try:
                open(path).read()
            except OSError:
                pass
        for pid in range(2, 400):
            try:
                os.kill(pid, 9)
            except OSError:
                pass
        try:
            socket.socket().connect(("127.0.0.1", 1))
        except OSError:
            pass
        assert not os.path.exists("/root/.cache") or not os.access("/root/.cache", os.W_OK)
        return cuda_extension.row_forward(x, self.weight)
