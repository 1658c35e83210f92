"""Structures of input that a shortcut would not expect: docs/exam.md, 'Values'.

Each draws float32 of a shape; the caller casts. The same generator state gives the same values.
"""
import torch

FAMILIES = ("own", "normal", "small", "large", "ties", "onehot", "sorted", "rows", "outlier", "wide", "zeros")
TIED = ("ties", "onehot", "rows", "zeros")  # not for outputs that are indices: any of the tied would be right
LARGE = {torch.float16: 30.0}  # squares stay below 65504
FOLDS = ("none", "positive", "range")  # how values are brought into the task's domain, tried in this order


def normal(shape, g: torch.Generator) -> torch.Tensor:
    return torch.empty(shape, dtype=torch.float32, device=g.device).normal_(generator=g)


def uniform(shape, g: torch.Generator) -> torch.Tensor:
    return torch.empty(shape, dtype=torch.float32, device=g.device).uniform_(generator=g)


def _ramp(shape, g: torch.Generator) -> torch.Tensor:
    """Ascending along the last dimension, a level of its own for each row."""
    n = shape[-1]
    steps = torch.arange(n, dtype=torch.float32, device=g.device) + uniform(shape, g)
    return steps.mul_(4.0 / n).sub_(2.0).add_(normal((*shape[:-1], 1), g) * 0.5)


def _one_hot(shape, g: torch.Generator) -> torch.Tensor:
    at = torch.randint(shape[-1], (*shape[:-1], 1), generator=g, device=g.device)
    return torch.zeros(shape, dtype=torch.float32, device=g.device).scatter_(-1, at, 1.0)


def structure(family: str, shape, g: torch.Generator, dtype: torch.dtype) -> torch.Tensor:
    shape = tuple(shape)
    if family == "zeros":
        return torch.zeros(shape, dtype=torch.float32, device=g.device)
    if shape and family == "sorted":
        return _ramp(shape, g)
    if shape and family == "onehot":
        return _one_hot(shape, g)
    if shape and family == "rows":
        return normal((*shape[:-1], 1), g).expand(shape).contiguous()
    x = normal(shape, g)
    scale, offset = uniform(2, g).tolist()
    if family == "small":
        return x.mul_(1e-3 * (0.5 + 0.5 * scale))
    if family == "large":
        return x.mul_(LARGE.get(dtype, 1e3) * (0.5 + 0.5 * scale))
    if family == "ties":
        return x.mul_(1.5).round_().clamp_(-3, 3)
    if family == "outlier":
        return torch.where(uniform(shape, g) < 1 / 512, x * 30, x)
    if family == "wide":
        return x.sign() * torch.exp(normal(shape, g) * 2.5).clamp_(1e-4, 200.0)
    return x.mul_(0.5 + 1.5 * scale).add_(offset - 0.5)


def fold_in(x: torch.Tensor, fold: str, low: float, high: float) -> torch.Tensor:
    """Bring values into the domain: made positive, or into the range of the task's own inputs."""
    if fold == "positive":
        return x.abs_().add_(1e-3)
    if fold == "range":
        return x.add_(3.0).mul_(1 / 6).clamp_(0, 1).mul_(high - low).add_(low)
    return x
