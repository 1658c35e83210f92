"""Quantities of different size in one output: a small one must not hide under the spread of the whole.

Where the slices of an output along a dimension (its columns, its channels) have spreads that differ, each is held to
its own: |a - r| <= tol (s_j + |r|) and ||a_j - r_j|| <= tol ||r_j - mean r_j||, tol by eager's own error in that slice.
"""
import ctypes
import dataclasses
import math

import torch

from .compare import CODES, Comparison, Result, all_finite, library, scaled_error

LEAST = 32  # elements that a slice must have: fewer do not tell its spread
UNEVEN = 0.3  # a slice with less than this share of the whole's spread
FLOOR = 1e-4  # of the whole's spread: what varies less counts as constant
HARDNESS = 30  # as in judge.py
LOWER = 6  # errors of a slice in a lower precision have few elements behind them: more room than a whole output's 3
SPARSE = 8  # so many elements must share the spread of a slice
EAGER_MAX = 0.1  # where eager is off by more, the slice is below its rounding: not held


@dataclasses.dataclass
class Slices:
    """Of one dimension of one output: all tensors have size 1 in the other dimensions."""
    dim: int
    s: torch.Tensor
    base: torch.Tensor
    tol: torch.Tensor
    tol_norm: torch.Tensor


def _others(r: torch.Tensor, dim: int) -> list[int]:
    return [d for d in range(r.dim()) if d != dim]


def _spread(r: torch.Tensor, dim: int, whole: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Standard deviation and the norm around the mean of every slice, over its finite elements."""
    over = _others(r, dim)
    n = torch.tensor(r.numel() // r.shape[dim], dtype=r.dtype, device=r.device)
    if all_finite(r):
        s = torch.var_mean(r, dim=over, correction=0, keepdim=True)[0].sqrt_()
    else:
        finite = torch.isfinite(r)
        n = finite.sum(over, keepdim=True).clamp_min(1)
        mean = torch.where(finite, r, 0.0).sum(over, keepdim=True) / n
        s = torch.where(finite, r - mean, 0.0).square_().sum(over, keepdim=True).div_(n).sqrt_()
    least = FLOOR * whole
    # A constant slice is one sample, its errors are all the same: it is measured by its own size.
    size = torch.where(torch.isfinite(r), r, 0.0).square_().sum(over, keepdim=True).sqrt_()
    base = torch.where(s < least, torch.maximum(size, least * n.sqrt()), s * n.sqrt())
    return s.clamp_min_(least), base


def uneven(r: torch.Tensor, whole: float) -> list[int]:
    """Dimensions along which some slice varies far less than the whole."""
    dims = [d for d, size in enumerate(r.shape) if size > 1 and r.numel() // size >= LEAST]
    return [d for d in dims if whole > 0 and bool((_spread(r, d, whole)[0] < UNEVEN * whole).any())]


def _measured(a: torch.Tensor, r: torch.Tensor, sl: Slices, aside: torch.Tensor | None) -> tuple[Comparison, torch.Tensor, torch.Tensor]:
    """Misses, and of every slice the largest error and the relative norm. `aside`: elements that do not count."""
    if r.device.type == "cpu" and a.dtype in CODES and library():
        return _host(a, r, sl, aside)
    error, diff = scaled_error(a, r, sl.s), torch.sub(a, r)
    if not all_finite(r):
        diff.masked_fill_(~torch.isfinite(r), 0.0)
    if aside is not None:
        error, diff = error.masked_fill_(aside, 0.0), diff.masked_fill_(aside, 0.0)
    over, bad = _others(r, sl.dim), error > sl.tol
    norm = diff.square_().sum(over, keepdim=True).sqrt_() / sl.base.clamp_min(1e-300)
    c = Comparison(misses=int(bad.sum()))
    c.first = int(bad.reshape(-1).to(torch.uint8).argmax()) if c.misses else -1
    return c, error.amax(over, keepdim=True), norm.nan_to_num_(nan=float("inf"))


def _host(a, r, sl: Slices, aside) -> tuple[Comparison, torch.Tensor, torch.Tensor]:
    a, r = a.contiguous(), r.contiguous()
    if a.dtype in (torch.float16, torch.bfloat16):  # torch widens several elements at a time
        a = a.float()
    s, tol = sl.s.contiguous(), sl.tol.contiguous()
    worst, diff, out = torch.empty_like(s), torch.empty_like(s), Result()
    aside = aside.contiguous() if aside is not None else None
    rule = Rule(s.numel(), math.prod(r.shape[sl.dim + 1:]), s.data_ptr(), tol.data_ptr(),
                aside.data_ptr() if aside is not None else None, worst.data_ptr(), diff.data_ptr())
    rc = library().compare_slices(ctypes.c_void_p(a.data_ptr()), CODES[a.dtype], ctypes.c_void_p(r.data_ptr()),
                                  ctypes.c_int64(r.numel()), ctypes.byref(rule), ctypes.byref(out))
    if rc != 0:
        raise MemoryError("compare the slices of an output")
    norm = diff.sqrt_() / sl.base.clamp_min(1e-300)
    return Comparison(misses=out.misses, first=out.first), worst, norm.nan_to_num_(nan=float("inf"))


class Rule(ctypes.Structure):
    """struct slice_rule"""
    _fields_ = [("n_slices", ctypes.c_int64), ("inner", ctypes.c_int64)] + \
               [(n, ctypes.c_void_p) for n in ("s", "tol", "aside", "worst", "diff")]


def standard(r: torch.Tensor, eager: torch.Tensor, dim: int, whole: float, tol: float, jumps: torch.Tensor | None) -> Slices:
    s, base = _spread(r, dim, whole)
    sl = Slices(dim, s, base, torch.full_like(s, math.inf), torch.full_like(s, math.inf))
    _, worst, norm = _measured(eager, r, sl, jumps)
    sl.tol, sl.tol_norm = (torch.where(e <= EAGER_MAX, (3 * e).clamp_min(tol), math.inf) for e in (worst, norm))
    return sl


def _sparse(r: torch.Tensor, dim: int) -> torch.Tensor:
    """Slices in which a few elements make up the spread: the largest error of so few says little of another's."""
    over = _others(r, dim)
    d = torch.where(torch.isfinite(r), r, 0.0)
    d = (d - d.mean(over, keepdim=True)).square_()
    return d.sum(over, keepdim=True).square_() < SPARSE * d.square().sum(over, keepdim=True)


def eased(sl: Slices, r: torch.Tensor, moved: list[torch.Tensor], lower: list[torch.Tensor]) -> Slices:
    """Held no closer than what is hard to compute, and a lower precision that the whole allows, let it be."""
    out = dataclasses.replace(sl, tol=sl.tol, tol_norm=sl.tol_norm)
    for factor, answers in ((HARDNESS, moved), (LOWER, lower)):
        for a in answers:
            _, worst, norm = _measured(a, r, sl, None)
            room = [torch.where(factor * e <= 3 * EAGER_MAX, factor * e, math.inf) for e in (worst, norm)]
            out.tol, out.tol_norm = torch.maximum(out.tol, room[0]), torch.maximum(out.tol_norm, room[1])
    few = _sparse(r, sl.dim)
    out.tol, out.tol_norm = out.tol.masked_fill(few, math.inf), out.tol_norm.masked_fill(few, math.inf)
    return out


def misses(a: torch.Tensor, r: torch.Tensor, sl: Slices, aside: torch.Tensor | None) -> tuple[Comparison, str]:
    """What misses, and the rule that it misses; of a slice whose norm is off, all elements."""
    c, _, norm = _measured(a, r, sl, aside)
    inner = math.prod(r.shape[sl.dim + 1:])
    if c.misses:
        j = c.first // inner % r.shape[sl.dim]
        return c, f"|a - r| <= {_at(sl.tol, j):.2g} (s + |r|), s = {_at(sl.s, j):.3g} of slice {j} of dimension {sl.dim}"
    off = (~(norm <= sl.tol_norm)).reshape(-1)
    if bool(off.any()):
        j = int(off.to(torch.uint8).argmax())
        c = Comparison(misses=int(off.sum()) * (r.numel() // r.shape[sl.dim]), first=j * inner)
        return c, f"||a - r|| <= {_at(sl.tol_norm, j):.2g} ||r - mean r|| in slice {j} of dimension {sl.dim}"
    return c, ""


def _at(t: torch.Tensor, j: int) -> float:
    return float(t.reshape(-1)[j])
