"""What a value looks like to a candidate: dtype, shape, strides, the storage that they span, who shares it."""
import math

import torch

from .protocol import Refusal

DTYPES = {
    torch.float32: "f32", torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16",
    torch.float8_e4m3fn: "e4m3", torch.float8_e5m2: "e5m2", torch.int8: "i8", torch.uint8: "u8",
    torch.int16: "i16", torch.int32: "i32", torch.int64: "i64", torch.bool: "bool",
    torch.complex64: "c64", torch.complex128: "c128",
}
FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
RANK_MAX = 8
TEXT_MAX = 127  # bytes, of names and of text arguments


def is_float(t) -> bool:
    return isinstance(t, torch.Tensor) and t.dtype in FLOATS


def span(t: torch.Tensor) -> int:
    """Elements of storage from the first to the last that the strides reach."""
    return sum((n - 1) * s for n, s in zip(t.shape, t.stride())) + 1 if t.numel() else 0


def span_bytes(t: torch.Tensor) -> int:
    return span(t) * t.element_size()


def flat(t: torch.Tensor) -> torch.Tensor:
    """The spanned storage in one dimension: gaps are in it, and what strides of 0 repeat is there once."""
    return t.as_strided((span(t),), (1,), t.storage_offset())


def raw(t: torch.Tensor) -> torch.Tensor:
    return flat(t).view(torch.uint8)


def overlaps(t: torch.Tensor) -> bool:
    """True where two indices may reach one element (expanded or unfolded tensors)."""
    reach = 0
    for stride, n in sorted((s, n) for s, n in zip(t.stride(), t.shape) if n > 1):
        if stride <= reach:
            return True
        reach += stride * (n - 1)
    return False


def like(t: torch.Tensor, device=None) -> torch.Tensor:
    """Memory of that shape, dtype and strides; gaps are zero, the rest is uninitialised."""
    make = torch.empty if span(t) == t.numel() else torch.zeros
    room = make(span(t), dtype=t.dtype, device=device or t.device)
    return room.as_strided(t.shape, t.stride()) if t.numel() else room.view(t.shape)


def laid_out(t: torch.Tensor, example: torch.Tensor) -> torch.Tensor:
    """The same values with the example's strides."""
    if t.stride() == example.stride() or not t.numel():
        return t
    room = like(example)
    if overlaps(example):  # both have the example's shape: take each repeated element once
        index = tuple(slice(0, 1) if s == 0 else slice(None) for s in example.stride())
        room[index].copy_(t[index])
        return room
    return room.copy_(t)


def storage_key(t: torch.Tensor) -> tuple:
    return t.untyped_storage().data_ptr(), t.storage_offset(), tuple(t.shape), tuple(t.stride()), t.dtype


def aliases(tensors: list) -> list[int]:
    """For each entry the first earlier entry with the same storage, or -1."""
    first, out = {}, []
    for i, t in enumerate(tensors):
        if not isinstance(t, torch.Tensor) or not t.numel():
            out.append(-1)
            continue
        key = storage_key(t)
        out.append(first.get(key, -1))
        first.setdefault(key, i)
    return out


def describe(name: str, leaf, alias: int = -1) -> dict:
    """One `value` of docs/worker.md."""
    for what, text in (("name", name), ("text", leaf)):
        if isinstance(text, str) and (not text.isprintable() or len(text.encode(errors="replace")) > TEXT_MAX):
            raise Refusal("task", f"a value's {what} is not printable or longer than {TEXT_MAX} bytes ({ascii(text)[:60]}): not native")
    v = {"name": name, "kind": "none", "dtype": "f32", "shape": [], "stride": [], "alias": -1,
         "bytes": 0, "i": 0, "r": 0.0, "text": ""}
    if isinstance(leaf, torch.Tensor):
        check_native(name, leaf)
        v.update(kind="tensor", dtype=DTYPES[leaf.dtype], shape=list(leaf.shape), stride=list(leaf.stride()),
                 alias=alias, bytes=span_bytes(leaf))
    elif isinstance(leaf, bool):
        v.update(kind="flag", i=int(leaf))
    elif isinstance(leaf, int):
        v.update(kind="int", i=leaf)
    elif isinstance(leaf, float):
        v.update(kind="real", r=leaf if math.isfinite(leaf) else str(leaf))  # JSON has no inf
    elif isinstance(leaf, str):
        v.update(kind="text", text=leaf)
    elif leaf is not None:
        raise Refusal("task", f"'{name}' is a {type(leaf).__name__}: not native")
    return v


def check_native(name: str, t: torch.Tensor) -> None:
    if t.layout != torch.strided:
        raise Refusal("task", f"'{name}' is a sparse tensor: not native")
    if t.dtype not in DTYPES:
        raise Refusal("task", f"'{name}' has dtype {t.dtype}: not native")
    if t.dim() > RANK_MAX:
        raise Refusal("task", f"'{name}' has {t.dim()} dimensions, the contract takes {RANK_MAX}")
