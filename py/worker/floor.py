"""The least time that the task can take: a model, never a verdict."""
import time

import torch
from torch.utils.flop_counter import FlopCounterMode

from .load import Task
from .memory import Memory, room
from .reference import tf32


def count_flops(task: Task, leaves: list) -> int:
    """Of products and convolutions, as torch counts them; 0 where it cannot count."""
    try:
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            task.call(task.model, leaves)
        return counter.get_total_flops()
    except Exception:
        return 0


def best_s(work, memory: Memory) -> float:
    best = float("inf")
    for _ in range(5):
        memory.device.sync()
        start = time.perf_counter()
        work()
        memory.device.sync()
        best = min(best, time.perf_counter() - start)
    return best


def bandwidth(memory: Memory) -> float:
    """Bytes a second, read plus written, of a large copy."""
    n = (1 << 30) if memory.device.voids else (64 << 20)
    a = torch.ones(n // 4, device=memory.device.torch_device)
    b = torch.empty_like(a)
    return 2 * n / best_s(lambda: b.copy_(a), memory)


def peak_flops(memory: Memory) -> float:
    """Multiply-adds x 2 a second of a large product: TF32, or the task's half precision."""
    low = [t.dtype for t in memory.inputs + memory.params if isinstance(t, torch.Tensor) and
           t.dtype in (torch.float16, torch.bfloat16)]
    cuda = memory.device.voids
    n, dtype = (8192, low[0] if low else torch.float32) if cuda else (1024, torch.float32)
    a = torch.randn(n, n, device=memory.device.torch_device).to(dtype)
    with tf32(True):
        return 2 * n ** 3 / best_s(lambda: a @ a, memory)


def floor_of(task: Task, memory: Memory, leaves: list) -> dict:
    """Every input, parameter and output once over the bandwidth, or the flops over the matrix units' rate."""
    size = room(memory.inputs, memory.in_alias) + room(memory.params, memory.param_alias) + room(memory.outputs)
    flops, speed = count_flops(task, leaves), bandwidth(memory)
    by_flops = flops / peak_flops(memory) if flops else 0.0
    return {"bytes": size, "flops": float(flops), "us": max(size / speed, by_flops) * 1e6, "bandwidth": speed}
