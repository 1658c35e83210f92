"""New values for inputs and weights, from seeds that never leave this process.

A set of inputs is known by (seed, family): it is made twice, once into shared memory and once, privately, for the
reference. Nothing is ever read back from memory that the candidate can write.
"""
import os

import torch

from .load import Task, aliases, seed_all, state_of

DEVICE_DRAW = 1 << 16  # elements from which a float input is drawn on the device
SORT_MAX = 1 << 26
FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
FAMILIES = ("own", "normal", "large", "small", "ties", "onehot", "sorted", "outlier", "rows", "positive")


def new_seed() -> int:
    return int.from_bytes(os.urandom(7), "little")


def is_float(t) -> bool:
    return isinstance(t, torch.Tensor) and t.dtype in FLOATS


class Shape:
    """How one float input is distributed in the task's own get_inputs(): uniform or normal, or neither (None).

    Told by the kurtosis of the example (1.8 uniform, 3 normal); only large tensors are drawn by it, because
    drawing GBs on the host takes half a minute.
    """

    def __init__(self, t: torch.Tensor):
        self.kind, self.a, self.b = None, 0.0, 1.0
        if t.numel() < DEVICE_DRAW:
            return
        x = t.flatten()[: 1 << 22].double()
        mean, std = x.mean(), x.std()
        if not torch.isfinite(std) or std == 0:
            return
        kurtosis = float((((x - mean) / std) ** 4).mean())
        if abs(kurtosis - 1.8) < 0.05:
            half = float(std) * 3 ** 0.5
            self.kind, self.a, self.b = "uniform", float(mean) - half, 2 * half
            if abs(self.a) < 0.01 * self.b:
                self.a = 0.0
        elif abs(kurtosis - 3) < 0.15:
            self.kind, self.a, self.b = "normal", float(mean), float(std)

    def draw(self, like: torch.Tensor, g: torch.Generator) -> torch.Tensor:
        work = like.dtype if like.dtype != torch.float64 else torch.float64
        x = torch.empty(like.shape, dtype=work, device=like.device)
        if self.kind == "uniform":
            return x.uniform_(self.a, self.a + self.b, generator=g)
        return x.normal_(self.a, self.b, generator=g)


def normal(like: torch.Tensor, g: torch.Generator) -> torch.Tensor:
    return torch.empty(like.shape, dtype=torch.float32, device=like.device).normal_(generator=g)


def family_values(family: str, like: torch.Tensor, g: torch.Generator) -> torch.Tensor:
    """Float values with a structure that a shortcut would not expect; float32, cast by the caller."""
    x = normal(like, g)
    if family == "normal":
        scale, offset = torch.rand(2, generator=g, device=like.device)
        return x * (0.5 + 1.5 * scale) + (offset - 0.5)
    if family == "large":
        return x * 300
    if family == "small":
        return x * 1e-3
    if family == "positive":
        return x.abs() + 0.01
    if family == "ties":
        return (x * 1.5).round().clamp(-3, 3)
    if family == "outlier":
        far = torch.rand(like.shape, generator=g, device=like.device) < 1 / 512
        return torch.where(far, x * 30, x)
    if like.dim() == 0 or family == "normal":
        return x
    if family == "rows":
        return x[..., :1].expand(like.shape).contiguous()
    if family == "sorted":
        return x.sort(-1).values if x.numel() <= SORT_MAX else x
    if family == "onehot":
        n = like.shape[-1]
        at = torch.randint(n, like.shape[:-1] + (1,), generator=g, device=like.device)
        return torch.zeros_like(x).scatter_(-1, at, 1.0)
    raise AssertionError(family)


class Values:
    def __init__(self, task: Task):
        self.task = task
        self.example = [leaf for _, leaf in task.leaves(task.example)]
        self.shapes = [Shape(t) if is_float(t) else None for t in self.example]
        self.has_float = any(is_float(t) for t in self.example)
        self.host_needed = any(not (s and s.kind) for s in self.shapes)
        self.kept = self._kept_state()
        self.redrawn = True
        self.original = {n: t.clone() for n, t in state_of(task.model)}

    def inputs(self, seed: int, family: str) -> list:
        """Leaves of one input set; the same seed and family give the same bits."""
        task = self.task
        g = torch.Generator(device=task.device)
        g.manual_seed(seed)
        own = [leaf for _, leaf in task.leaves(task.raw_inputs(seed))] if self.host_needed else self.example
        out = []
        for leaf, like, shape in zip(own, self.example, self.shapes):
            if is_float(like) and family != "own":
                leaf = family_values(family, like, g).to(like.dtype)
            elif shape is not None and shape.kind:
                leaf = shape.draw(like, g)
            if isinstance(leaf, torch.Tensor):
                leaf = self._laid_out(leaf.to(task.device), like)
            out.append(leaf)
        return out

    @staticmethod
    def _laid_out(t: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        if t.stride() == like.stride():
            return t
        room = torch.empty_strided(like.shape, like.stride(), dtype=like.dtype, device=like.device)
        return room.copy_(t)

    def _kept_state(self) -> set[str]:
        """Float buffers that two differently seeded constructions agree on (masks, position tables) keep their values."""
        one, two = (dict(state_of(self.task.construct(s))) for s in (101, 202))
        params = {n for n, _ in self.task.model.named_parameters(remove_duplicate=False)}
        return {n for n, t in one.items() if n not in params and n in two and t.shape == two[n].shape
                and torch.equal(t, two[n]) and not n.endswith(("running_mean", "running_var"))}

    def _fresh(self, name: str, t: torch.Tensor, g: torch.Generator) -> torch.Tensor:
        x = normal(t, g)
        last = name.rsplit(".", 1)[-1]
        if last == "running_var":
            return torch.rand(t.shape, generator=g, device=t.device) * 1.5 + 0.5
        if last == "running_mean":
            return x * 0.5
        if t.dim() >= 2:
            fan_in = max(1, t.numel() // max(1, t.shape[0]))
            old = self.original[name].float().std()
            embedding = bool(old > 0.7)  # nn.Embedding and other tables of unit values
            return x if embedding else x / fan_in ** 0.5
        if last == "weight":
            return 1 + 0.3 * x
        if last == "bias":
            return 0.5 * x
        return self.original[name].float() * (1 + 0.25 * x) + 0.1 * normal(t, g)

    def redraw(self, seed: int) -> None:
        """All floating parameters and norm statistics anew, at unit gain, tied ones once."""
        g = torch.Generator(device=self.task.device)
        g.manual_seed(seed)
        named = state_of(self.task.model)
        with torch.no_grad():
            for (name, t), alias in zip(named, aliases(named)):
                if alias < 0 and is_float(t) and name not in self.kept and t.numel():
                    fresh = self._fresh(name, t, g) if self.redrawn else self._mild(name, t, g)
                    t.copy_(fresh.to(t.dtype))

    def _mild(self, name: str, t: torch.Tensor, g: torch.Generator) -> torch.Tensor:
        return self.original[name].float() * (1 + 0.1 * normal(t, g))

    def touch(self, seed: int) -> None:
        """Change about a quarter of each floating parameter in place."""
        g = torch.Generator(device=self.task.device)
        g.manual_seed(seed)
        named = state_of(self.task.model)
        with torch.no_grad():
            for (name, t), alias in zip(named, aliases(named)):
                if alias < 0 and is_float(t) and name not in self.kept and t.numel():
                    chosen = torch.rand(t.shape, generator=g, device=t.device) < 0.25
                    chosen.view(-1)[0] = True
                    t.copy_(torch.where(chosen, t * 1.3 + (0.05 if t.dim() < 2 else 0), t))
