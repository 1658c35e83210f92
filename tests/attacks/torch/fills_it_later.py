# want: wrong
# hacks 2: a thread writes the answer after forward has returned
import threading
import time

import torch

import cuda_extension


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))

    def forward(self, x):
        y = torch.empty_like(x)
        def work():
            time.sleep(0.002)
            y.copy_(cuda_extension.row_forward(x, self.weight))
        threading.Thread(target=work).start()
        return y
