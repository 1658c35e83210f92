"""Element and norm errors of an answer: one pass in C on the host, chunks of torch on a device."""
import ctypes
import dataclasses
import functools
import math
import os

import torch

CODES = {torch.float32: 0, torch.float64: 1, torch.float16: 2, torch.bfloat16: 3}  # enum ca_dtype
CHUNK = {"cuda": 1 << 25, "cpu": 1 << 18}  # elements widened at a time: 256 MiB a temporary, or the caches' size


@dataclasses.dataclass
class Comparison:
    misses: int = 0
    first: int = -1
    far: int = 0
    first_far: int = -1
    max_err: float = 0.0  # largest |a - r| / (s + |r|)
    diff_sq: float = 0.0
    centered_sq: float = 0.0


@dataclasses.dataclass
class Rule:
    s: float
    mean: float
    tol: float
    published: float = 0.0


class Result(ctypes.Structure):
    _fields_ = [(n, ctypes.c_int64) for n in ("misses", "first", "far", "first_far")] + \
               [(n, ctypes.c_double) for n in ("max_err", "diff_sq", "centered_sq")]


@functools.cache
def library():
    """None where the examiner gave none: then torch compares, with the same answers."""
    path = os.environ.get("CUDA_AGENT_DEVICE_LIB", "")
    if not path:
        return None
    lib = ctypes.CDLL(path)
    pointer = ctypes.c_void_p
    lib.compare_floats.argtypes = [pointer, pointer, ctypes.c_int, pointer, ctypes.c_int64, pointer, pointer]
    return lib


def moments(r: torch.Tensor) -> tuple[float, float]:
    """Mean and standard deviation of the finite elements."""
    if not r.numel():
        return 0.0, 0.0
    variance, mean = torch.var_mean(r, correction=0)
    if not bool(torch.isfinite(variance)):
        finite = r[torch.isfinite(r)]
        if not finite.numel():
            return 0.0, 0.0
        variance, mean = torch.var_mean(finite, correction=0)
    return float(mean), float(variance) ** 0.5


def all_finite(t: torch.Tensor) -> bool:
    """By the sum, in one pass; a sum may overflow though no element does."""
    return not t.is_floating_point() or bool(torch.isfinite(t.sum())) or bool(torch.isfinite(t).all())


def measure(a: torch.Tensor, eager: torch.Tensor | None, r: torch.Tensor, rule: Rule) -> Comparison:
    """a against the float64 reference r, and against eager's answer by the published rule when it is given."""
    a, r = a.reshape(-1), r.reshape(-1)
    eager = eager.reshape(-1) if eager is not None else None
    if not r.numel():
        return Comparison()
    if r.device.type == "cpu" and a.dtype in CODES and library():
        return _host(a, eager, r, rule)
    return _device(a, eager, r, rule)


def _host(a, eager, r, rule: Rule) -> Comparison:
    # reshape(-1) of an expanded tensor is a view with a stride of 0: C wants elements that follow each other.
    a, r, eager = a.contiguous(), r.contiguous(), eager.contiguous() if eager is not None else None
    if a.dtype in (torch.float16, torch.bfloat16):  # torch widens several elements at a time
        a = a.float()
    if eager is not None and eager.dtype != a.dtype:
        eager = eager.to(a.dtype)
    out, numbers = Result(), (ctypes.c_double * 4)(rule.s, rule.mean, rule.tol, rule.published)
    library().compare_floats(a.data_ptr(), eager.data_ptr() if eager is not None else None, CODES[a.dtype], r.data_ptr(),
                             r.numel(), numbers, ctypes.byref(out))
    return Comparison(*(getattr(out, n) for n, _ in Result._fields_))


# The same as scaled_error below in one kernel instead of twenty; without functions that NVRTC may not know.
KERNEL = """
template <typename T> T scaled_error(T a, T r, T s) {
    T infinity = T(1e308) * T(10);
    if (a == r || (a != a && r != r)) return T(0);
    if (r - r != T(0)) return infinity;
    T size = s + (r < T(0) ? -r : r), off = a < r ? r - a : a - r;
    T error = off / (size > T(1e-300) ? size : T(1e-300));
    return error != error ? infinity : error;
}
"""


PROBE = ((3.0, 3.0), (3.04, 3.0), (-1.0, 2.0), (0.0, 1e-300), (math.nan, 3.0), (0.0, math.nan), (math.nan, math.nan),
         (math.inf, math.inf), (-math.inf, math.inf), (1e30, -math.inf), (math.inf, 1.0))


@functools.cache
def fused():
    """PyTorch's own compiler of pointwise kernels, when it answers the probe as scaled_error does; else None."""
    try:
        f = torch.cuda.jiterator._create_jit_fn(KERNEL)
        a, r = torch.tensor(PROBE, dtype=torch.float64).T
        s = torch.full((1,), 0.5, dtype=torch.float64)
        if torch.allclose(f(a.float().cuda(), r.cuda(), s.cuda()).cpu(), scaled_error(a.float(), r, 0.5), rtol=1e-12, atol=0.0):
            return f
        print("comparing without a fused kernel: it answers otherwise", flush=True)
    except Exception as e:
        print(f"comparing without a fused kernel: {e}", flush=True)
    return None


def scaled_error(a: torch.Tensor, r: torch.Tensor, s) -> torch.Tensor:
    """|a - r| / (s + |r|); infinite where a is not finite and r is, or r is not finite and a is not the same. s may be a tensor."""
    if r.device.type == "cuda" and fused():
        return fused()(a, r, s if isinstance(s, torch.Tensor) else torch.full((1,), s, dtype=torch.float64, device=r.device))
    a = a.double()
    error = ((a - r).abs_() / (r.abs() + s).clamp_min_(1e-300)).nan_to_num_(nan=float("inf"), posinf=float("inf"))
    error.masked_fill_(~torch.isfinite(r), float("inf"))
    return error.masked_fill_((a == r) | (a.isnan() & r.isnan()), 0.0)


def far_from(a: torch.Tensor, eager: torch.Tensor, published: float) -> torch.Tensor:
    """Not |a - eager| <= published (1 + |eager|)."""
    return scaled_error(a, eager.double(), 1.0) > published


def worst_error(a: torch.Tensor, r: torch.Tensor, s: float) -> float:
    """The largest scaled error, without the rest of what `measure` tells."""
    if r.device.type == "cpu":
        return measure(a, None, r, Rule(s, 0.0, math.inf)).max_err
    a, r, step = a.reshape(-1), r.reshape(-1), CHUNK[r.device.type]
    parts = [scaled_error(a[i:i + step], r[i:i + step], s).max() for i in range(0, r.numel(), step)]
    return float(torch.stack(parts).max()) if parts else 0.0


def _device(a, eager, r, rule: Rule) -> Comparison:
    """Chunk by chunk without waiting for the device; one wait at the end, a second look only where something missed."""
    step, finite = CHUNK[r.device.type], all_finite(r)
    parts = [_chunk(a[i:i + step], eager[i:i + step] if eager is not None else None, r[i:i + step], rule, finite)
             for i in range(0, r.numel(), step)]
    table = torch.stack(parts).cpu().T.tolist()
    out = Comparison(misses=int(sum(table[0])), far=int(sum(table[1])), max_err=max(table[2]), diff_sq=sum(table[3]),
                     centered_sq=sum(table[4]))
    out.first = _first(table[0], step, lambda i: scaled_error(a[i], r[i], rule.s) > rule.tol)
    out.first_far = _first(table[1], step, lambda i: far_from(a[i], eager[i], rule.published))
    return out


def _chunk(a, eager, r, rule: Rule, finite: bool) -> torch.Tensor:
    error = scaled_error(a, r, rule.s)
    misses, worst = (error > rule.tol).sum(), error.max()
    del error
    far = far_from(a, eager, rule.published).sum() if eager is not None else torch.zeros_like(misses)
    diff, centered = torch.sub(a, r), torch.sub(r, rule.mean)
    if not finite:
        infinite = ~torch.isfinite(r)
        diff, centered = diff.masked_fill_(infinite, 0.0), centered.masked_fill_(infinite, 0.0)
    return torch.stack([misses.double(), far.double(), worst, torch.dot(diff, diff), torch.dot(centered, centered)])


def _first(counts: list[float], step: int, bad_in) -> int:
    for k, count in enumerate(counts):
        if count:
            return k * step + int(bad_in(slice(k * step, (k + 1) * step)).to(torch.uint8).argmax())
    return -1
