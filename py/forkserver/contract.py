"""include/cuda_agent.h and the runner's host in ctypes, and tensors over the memory that they name."""
import ctypes as c

import torch

TEXT_MAX = 256
DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2,
          torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool, torch.complex64, torch.complex128]
NONE, TENSOR, INT, REAL, FLAG, TEXT = range(6)


class Scalar(c.Union):
    _fields_ = [("i", c.c_int64), ("r", c.c_double), ("text", c.c_char_p)]


class Value(c.Structure):
    _fields_ = [("name", c.c_char_p), ("kind", c.c_int), ("dtype", c.c_int), ("rank", c.c_int), ("alias", c.c_int),
                ("shape", c.POINTER(c.c_int64)), ("stride", c.POINTER(c.c_int64)), ("data", c.c_void_p), ("u", Scalar)]


class List(c.Structure):
    _fields_ = [("n", c.c_int), ("v", c.POINTER(Value))]


class Call(c.Structure):
    _fields_ = [("version", c.c_int), ("device", c.c_int), ("threads", c.c_int), ("sm_count", c.c_int),
                ("input", List), ("param", List), ("out", List), ("stream", c.c_void_p),
                ("scratch", c.c_void_p), ("scratch_bytes", c.c_size_t), ("keep", c.c_void_p), ("keep_bytes", c.c_size_t),
                ("state", c.c_void_p)]


HELLO = c.CFUNCTYPE(c.c_int, c.c_int, c.c_int)
CODE = c.CFUNCTYPE(c.c_int, c.c_int)
SETUP = c.CFUNCTYPE(c.c_int, c.POINTER(Call), c.c_void_p)
FORWARD = c.CFUNCTYPE(c.c_int, c.POINTER(Call))


class Host(c.Structure):
    _fields_ = [("hello", HELLO), ("code", CODE), ("setup", SETUP), ("forward", FORWARD), ("text", c.c_char * TEXT_MAX)]


def entries(values: List) -> list[Value]:
    return [values.v[i] for i in range(values.n)]


class _Memory:
    """Device memory for torch to look at."""

    def __init__(self, address: int, n: int):
        self.__cuda_array_interface__ = {"shape": (n,), "typestr": "|u1", "data": (address, False), "version": 3}


def tensor(v: Value, device: int) -> torch.Tensor:
    """The value's own memory, not a copy. Empty tensors have none."""
    shape = [v.shape[i] for i in range(v.rank)]
    stride = [v.stride[i] for i in range(v.rank)]
    dtype = DTYPES[v.dtype]
    where = torch.device("cpu") if device < 0 else torch.device("cuda", device)
    if 0 in shape or not v.data:
        return torch.empty(shape, dtype=dtype, device=where)
    n = (sum((k - 1) * s for k, s in zip(shape, stride)) + 1) * dtype.itemsize
    if device < 0:
        raw = torch.frombuffer((c.c_uint8 * n).from_address(v.data), dtype=torch.uint8)
    else:
        raw = torch.as_tensor(_Memory(v.data, n), device=where)
    return raw.view(dtype).as_strided(shape, stride)


def leaf(v: Value, device: int):
    if v.kind == TENSOR:
        return tensor(v, device)
    if v.kind == TEXT:
        return v.u.text.decode()
    return {NONE: None, INT: v.u.i, REAL: v.u.r, FLAG: bool(v.u.i)}[v.kind]
