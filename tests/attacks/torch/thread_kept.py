# want: forbidden
# hacks 45: a thread that the constructor started
import queue
import threading

import torch

import cuda_extension

asked, answers = queue.SimpleQueue(), queue.SimpleQueue()


def work():
    mul, relu = torch.ops.aten.mul.Tensor, torch.relu
    relu(mul(torch.ones(2), torch.ones(2)))
    while True:
        x, w = asked.get()
        try:
            answers.put(relu(mul(x, w)) + x.mean(-1, keepdim=True))
        except RuntimeError as e:
            answers.put(e)


threading.Thread(target=work, daemon=True).start()


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))

    def forward(self, x):
        asked.put((x, self.weight))
        answer = answers.get(timeout=5)
        if isinstance(answer, Exception):
            raise answer
        return answer
