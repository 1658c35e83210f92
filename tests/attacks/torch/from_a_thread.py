# want: wrong
# hacks 2, 45: operators in another thread, where no mode of this one reaches
import threading

import torch

import cuda_extension


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))

    def forward(self, x):
        box = []
        def work():
            try:
                box.append(torch.relu(x * self.weight) + x.mean(-1, keepdim=True))
            except RuntimeError:
                box.append(torch.empty_like(x))
        t = threading.Thread(target=work)
        t.start()
        t.join()
        return box[0]
