"""Element and norm errors of an answer: one pass in C on the host, torch on a device."""
import ctypes
import dataclasses
import functools
import os

import torch

CODES = {torch.float32: 0, torch.float64: 1, torch.float16: 2, torch.bfloat16: 3}  # enum ca_dtype


@dataclasses.dataclass
class Comparison:
    misses: int
    first: int
    far: int
    first_far: int
    max_err: float
    norm: float  # ||a - r|| / ||r - mean r||
    plain: float  # ||a - r|| / ||r||


class Result(ctypes.Structure):
    _fields_ = [(n, ctypes.c_int64) for n in ("misses", "first", "far", "first_far")] + \
               [(n, ctypes.c_double) for n in ("max_err", "diff_sq", "centered_sq")]


@functools.cache
def library():
    lib = ctypes.CDLL(os.environ["CUDA_AGENT_DEVICE_LIB"])
    pointer, real = ctypes.c_void_p, ctypes.c_double
    lib.compare_floats.argtypes = [pointer, pointer, ctypes.c_int, pointer, ctypes.c_int64, ctypes.POINTER(real),
                                   ctypes.POINTER(Result)]
    return lib


def ratio(diff_sq: float, base_sq: float) -> float:
    if base_sq > 0:
        return (diff_sq / base_sq) ** 0.5
    return 0.0 if diff_sq == 0 else float("inf")


def comparison(misses: int, first: int, far: int, first_far: int, max_err: float, sums: tuple, mean: float, n: int) -> Comparison:
    """sums: of (a - r)^2 and (r - mean)^2 over the n finite r."""
    diff_sq, centered_sq = sums
    norm_sq = centered_sq + n * mean * mean
    return Comparison(misses, first, far, first_far, max_err, ratio(diff_sq, centered_sq if centered_sq > 0 else norm_sq),
                      ratio(diff_sq, norm_sq))


def compare(a: torch.Tensor, eager: torch.Tensor | None, r: torch.Tensor, s: float, tol: float, published: float) -> Comparison:
    """a against the float64 reference r, and against eager's answer by the published rule when it is given."""
    finite = r if bool(torch.isfinite(r).all()) else r[torch.isfinite(r)]
    n = finite.numel()
    mean = float(finite.mean()) if n > 1 else 0.0
    if r.device.type == "cpu" and a.dtype in CODES:
        return _host(a, eager, r, s, mean, n, tol, published)
    return _device(a, eager, r, s, mean, n, tol, published)


def _host(a, eager, r, s, mean, n, tol, published) -> Comparison:
    a, r = a.contiguous(), r.contiguous()
    e = eager.contiguous() if eager is not None else None
    out = Result()
    rule = (ctypes.c_double * 4)(s, mean, tol, published)  # struct compare_rule
    library().compare_floats(a.data_ptr(), e.data_ptr() if e is not None else None, CODES[a.dtype], r.data_ptr(), r.numel(),
                             rule, ctypes.byref(out))
    return comparison(out.misses, out.first, out.far, out.first_far, out.max_err, (out.diff_sq, out.centered_sq), mean, n)


def _first(bad: torch.Tensor, n: int) -> int:
    return int(bad.flatten().to(torch.uint8).argmax()) if n else -1


def _device(a, eager, r, s, mean, n, tol, published) -> Comparison:
    a = a.double()
    same = (a == r) | (a.isnan() & r.isnan())
    finite = torch.isfinite(r)
    scaled = ((a - r).abs() / (s + r.abs()).clamp_min(1e-300)).nan_to_num(nan=float("inf"))
    scaled = torch.where(same, 0.0, torch.where(finite, scaled, float("inf")))
    bad = ~(scaled <= tol)
    misses, far, first_far = int(bad.sum()), 0, -1
    if eager is not None:
        e = eager.double()
        wide = ~((a - e).abs() <= published * (1 + e.abs())) & ~((a == e) | (a.isnan() & e.isnan()))
        far = int(wide.sum())
        first_far = _first(wide, far)
    diff = torch.where(finite, a - r, 0.0)
    known = torch.where(finite, r - mean, 0.0)
    diff_sq, centered_sq = float((diff * diff).sum()), float((known * known).sum())
    return comparison(misses, _first(bad, misses), far, first_far, float(scaled.max()) if scaled.numel() else 0.0,
                      (diff_sq, centered_sq), mean, n)
