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


def ratio(diff_sq: float, centered_sq: float, norm_sq: float) -> float:
    base = centered_sq if centered_sq > 0 else norm_sq
    if base > 0:
        return (diff_sq / base) ** 0.5
    return 0.0 if diff_sq == 0 else float("inf")


def compare(a: torch.Tensor, eager: torch.Tensor | None, r: torch.Tensor, s: float, tol: float, published: float) -> Comparison:
    """a against the float64 reference r, and against eager's answer by the published rule when it is given."""
    finite = r if bool(torch.isfinite(r).all()) else r[torch.isfinite(r)]
    mean = float(finite.mean()) if finite.numel() > 1 else 0.0
    if r.device.type == "cpu" and a.dtype in CODES:
        return _host(a, eager, r, s, mean, tol, published)
    return _device(a, eager, r, s, mean, tol, published)


def _host(a, eager, r, s, mean, tol, published) -> Comparison:
    a, r = a.contiguous(), r.contiguous()
    e = eager.contiguous() if eager is not None else None
    out = Result()
    rule = (ctypes.c_double * 4)(s, mean, tol, published)  # struct compare_rule
    library().compare_floats(a.data_ptr(), e.data_ptr() if e is not None else None, CODES[a.dtype], r.data_ptr(), r.numel(),
                             rule, ctypes.byref(out))
    norm_sq = float((r * r).sum()) if out.centered_sq == 0 else 0.0
    return Comparison(out.misses, out.first, out.far, out.first_far, out.max_err,
                      ratio(out.diff_sq, out.centered_sq, norm_sq))


def _first(bad: torch.Tensor, n: int) -> int:
    return int(bad.flatten().to(torch.uint8).argmax()) if n else -1


def _device(a, eager, r, s, mean, tol, published) -> Comparison:
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
    norm_sq = float(torch.where(finite, r, 0.0).square().sum()) if centered_sq == 0 else 0.0
    return Comparison(misses, _first(bad, misses), far, first_far, float(scaled.max()) if scaled.numel() else 0.0,
                      ratio(diff_sq, centered_sq, norm_sq))
