"""New values for inputs, from seeds that never leave this process.

A set of inputs is known by (seed, family): it is made twice, once into shared memory and once, privately, for the
reference. Nothing is ever read back from memory that the candidate can write.
"""
import os

import torch

from .families import FAMILIES, TIED, fold_in, normal, structure, uniform
from .load import Task
from .protocol import Refusal
from .signature import FLOATS, aliases, flat, is_float, laid_out, like, overlaps


def new_seed() -> int:
    return int.from_bytes(os.urandom(7), "little")


class Values:
    """Draws of one task. `fold` says how structured families are brought into its domain."""

    def __init__(self, task: Task, leaves: list):
        """leaves: the example's arguments, then the state that the task carries."""
        self.task, self.example, self.fold = task, leaves, "none"
        self.alias = aliases(leaves)
        self.own_leaves = task.n_arguments
        second = self._called(new_seed())
        self.varies = [self._differs(a, b) for a, b in zip(leaves, second)] + [True] * (len(leaves) - self.own_leaves)
        self.structured = [is_float(t) and t.numel() > 0 and not self._is_mask(t) for t in leaves]
        self.range = [(float(t.min()), float(t.max())) if s else (0.0, 1.0) for t, s in zip(leaves, self.structured)]
        self.frozen = not any(v and isinstance(t, torch.Tensor) for v, t in zip(self.varies, leaves))
        self._note_scalars(second)

    def _called(self, seed: int) -> list:
        return [v for _, v in self.task.leaves(self.task.draw(seed))]

    @staticmethod
    def _differs(a, b) -> bool:
        if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
            return a != b
        if a.shape != b.shape or a.dtype != b.dtype:
            raise Refusal("task", f"get_inputs() gives other shapes or types each time ({tuple(a.shape)} and {tuple(b.shape)})")
        return not torch.equal(a, b)

    @staticmethod
    def _is_mask(t: torch.Tensor) -> bool:
        """Floats that stand for yes and no (0 and 1, or with infinities) keep their meaning."""
        if not bool(torch.isfinite(t).all()):
            return True
        low, high = t.min(), t.max()
        return bool(low != high) and bool(((t == low) | (t == high)).all())

    def _note_scalars(self, second: list) -> None:
        names = [n for n, _ in self.task.leaves(self.task.example)]
        moving = [n for n, a, v in zip(names, self.example, self.varies) if v and not isinstance(a, torch.Tensor)]
        if moving:
            self.task.notes.append("numbers that get_inputs() draws keep their first value: " + ", ".join(moving))

    def families(self, indices: bool) -> tuple[str, ...]:
        """What may be tried; `indices`: an output is no floating type."""
        if not any(self.structured):
            return ("own",)
        return tuple(f for f in FAMILIES if not (indices and f in TIED))

    def inputs(self, seed: int, family: str) -> list:
        """Leaves of one input set; the same seed and family give the same bits."""
        structured = [s and family != "own" for s in self.structured]
        need_call = any(v and not s and isinstance(t, torch.Tensor) for v, s, t in
                        zip(self.varies[:self.own_leaves], structured, self.example))
        called = self._called(seed) if need_call else self.example
        g = torch.Generator(device=self.task.device)
        g.manual_seed(seed ^ 0x5bd1e995)
        out = []
        for i, example in enumerate(self.example):
            if not isinstance(example, torch.Tensor):
                out.append(example)
            elif self.alias[i] >= 0:
                out.append(out[self.alias[i]])
            elif structured[i]:
                out.append(self._structured(i, family, g))
            elif i < self.own_leaves and self.structured[i] and self.frozen:
                out.append(self._scaled(example, g))
            elif i < self.own_leaves:
                out.append(laid_out(called[i] if self.varies[i] else example, example))
            else:
                out.append(self._state(example, g))
        return out

    def _structured(self, i: int, family: str, g: torch.Generator) -> torch.Tensor:
        example = self.example[i]
        shape = flat(example).shape if overlaps(example) else example.shape
        x = fold_in(structure(family, shape, g, example.dtype), self.fold, *self.range[i]).to(example.dtype)
        if overlaps(example):
            return x.as_strided(example.shape, example.stride())
        return laid_out(x, example)

    @staticmethod
    def _scaled(example: torch.Tensor, g: torch.Generator) -> torch.Tensor:
        """A get_inputs() that seeds itself gives the same floats each time: a remembered answer must not be right."""
        room = like(example)
        flat(room).copy_(flat(example) * (0.75 + 0.5 * uniform(flat(example).shape, g)).to(example.dtype))
        return room

    @staticmethod
    def _state(example: torch.Tensor, g: torch.Generator) -> torch.Tensor:
        """State carried between calls starts anywhere near its present spread."""
        if example.dtype not in FLOATS:
            return example.clone()
        spread = float(example.double().std(correction=0)) if example.numel() > 1 else 0.0
        x = normal(example.shape, g) * (spread or 0.5) + (float(example.double().mean()) if example.numel() else 0.0)
        return laid_out(x.to(example.dtype), example)

    def nudged(self, leaves: list, sign: float) -> list:
        """The same inputs in float64, each element moved by one part in a million, up or down at random."""
        g = torch.Generator(device=self.task.device)
        g.manual_seed(7)
        out = []
        for t in leaves:
            if is_float(t) and t.numel():
                up = torch.randint(0, 2, t.shape, generator=g, device=t.device, dtype=torch.int8)
                t = t.double() * (1 + sign * 1e-6 * (2.0 * up - 1))
            out.append(t)
        return out
