"""New values for parameters and buffers, at unit gain, in place: tied weights stay tied.

The model in this process is the master; the shared copies are written from it and never read back.
"""
import math

import torch

from .families import normal, uniform
from .load import Task
from .signature import aliases, flat, is_float, overlaps
from .state import Entry, entries

STATISTICS = ("running_mean", "running_var")


def fan_in(e: Entry) -> int:
    """Terms that one output of this weight adds up."""
    shape, kind = e.tensor.shape, type(e.owner).__name__
    if "Transpose" in kind:
        return max(1, shape[0] * math.prod(shape[2:]) // max(1, getattr(e.owner, "groups", 1)))
    return max(1, math.prod(shape[1:]))


class Weights:
    def __init__(self, task: Task):
        self.task, self.mild = task, False
        self.kept = self._kept()
        self.moments = {}
        for e in task.state_entries():
            if is_float(e.tensor) and e.tensor.numel():
                t = e.tensor.double()
                self.moments[e.name] = (float(t.mean()), float(t.std(correction=0)))

    def _kept(self) -> set[str]:
        """Float buffers and attributes that two differently seeded constructions agree on: masks, position tables."""
        doubtful = {e.name for e in self.task.state_entries() if not e.is_parameter and is_float(e.tensor)
                    and e.key not in STATISTICS}
        if not doubtful:
            return set()
        one = {e.name: e.tensor.clone() for e in entries(self.task.construct(101)) if e.name in doubtful}
        two = {e.name: e.tensor for e in entries(self.task.construct(202)) if e.name in doubtful}
        differ = {n for n in one if n in two and (one[n].shape != two[n].shape or not torch.equal(one[n], two[n]))}
        return doubtful - differ

    def changing(self) -> list[Entry]:
        """Entries that are re-drawn, each storage once."""
        found = self.task.state_entries()
        alias = aliases([e.tensor for e in found])
        return [e for e, a in zip(found, alias) if a < 0 and is_float(e.tensor) and e.tensor.numel() and e.name not in self.kept]

    def _fresh(self, e: Entry, shape, g: torch.Generator) -> torch.Tensor:
        mean, std = self.moments[e.name]
        if e.key == "running_var":
            return uniform(shape, g) * 1.5 + 0.5
        if e.key == "running_mean":
            return normal(shape, g) * 0.5
        if self.mild:
            return self._near(mean, std, e, shape, g)
        kind, wide = type(e.owner).__name__, [n for n in e.tensor.shape if n > 1]
        torch_made = type(e.owner).__module__.startswith("torch.")
        if torch_made and "Norm" in kind and e.key == "weight":
            return 1 + 0.3 * normal(shape, g)
        if torch_made and e.key.startswith("bias"):
            return 0.5 * normal(shape, g)
        if torch_made and "Embedding" in kind:
            return normal(shape, g)
        if torch_made and e.tensor.dim() >= 2 and len(wide) >= 2:
            return normal(shape, g) / fan_in(e) ** 0.5
        if len(wide) >= 2 and e.tensor.shape[0] > 1:
            return mean + max(std, max(e.tensor.shape[0], fan_in(e)) ** -0.5) * normal(shape, g)
        if std > 0 or mean == 0:  # biases, scales that start at 0, tables with a leading 1
            return mean + max(std, 0.5 if mean == 0 and std == 0 else 0.0, 0.1 * abs(mean)) * normal(shape, g)
        return mean * (1 + 0.3 * (2 * uniform(shape, g) - 1))  # keeps its sign: temperatures, scales that start at 1

    @staticmethod
    def _near(mean: float, std: float, e: Entry, shape, g: torch.Generator) -> torch.Tensor:
        """Like the constructor's values: for models that do not stand fresh ones."""
        if std == 0:
            return mean * (1 + 0.1 * (2 * uniform(shape, g) - 1)) + (0.01 * normal(shape, g) if mean == 0 else 0.0)
        return mean + std * normal(shape, g)

    def _write(self, seed: int, share: float) -> None:
        g = torch.Generator(device=self.task.device)
        g.manual_seed(seed)
        with torch.no_grad():
            for e in self.changing():
                target = flat(e.tensor) if overlaps(e.tensor) else e.tensor
                fresh = self._fresh(e, target.shape, g).to(target.dtype)
                if share < 1:
                    chosen = uniform(target.shape, g) < share
                    chosen[(0,) * chosen.dim()] = True
                    fresh = torch.where(chosen, fresh, target)
                target.copy_(fresh)

    def redraw(self, seed: int) -> None:
        self._write(seed, 1.0)

    def touch(self, seed: int) -> None:
        """A quarter of each floating parameter, at least its first element."""
        self._write(seed, 0.25)
