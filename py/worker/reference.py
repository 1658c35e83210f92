"""What the answer should be: in float64 where the model allows it, in eager PyTorch, and in each precision class."""
import contextlib
import copy

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .load import Task, out_of_memory
from .protocol import Refusal
from .signature import is_float
from .state import cast, entries

CLASSES = ("fp32", "tf32", "fp16", "bf16", "fp8")
MANTISSA = {"tf32": 10, "fp16": 10, "bf16": 7, "fp8": 3}
REAL = {"fp16": torch.float16, "bf16": torch.bfloat16}


@contextlib.contextmanager
def tf32(allowed: bool):
    """Matmul and convolution with or without TF32; PyTorch's own setting comes back afterwards."""
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before


@contextlib.contextmanager
def default_dtype(dtype: torch.dtype):
    """What forward makes for itself (torch.zeros, torch.arange of floats) has that precision, too."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def wide(t):
    if isinstance(t, torch.Tensor) and t.dtype == torch.complex64:
        return t.to(torch.complex128)
    return t.double() if is_float(t) else t


def round_mantissa(t: torch.Tensor, bits: int) -> torch.Tensor:
    """float32 with `bits` bits of mantissa, to nearest."""
    drop = 23 - bits
    whole = t.float().contiguous().view(torch.int32)
    rounded = ((whole + (1 << (drop - 1))) >> drop) << drop
    return torch.where(torch.isfinite(t), rounded.view(torch.float32), t.float())


class Operators(TorchDispatchMode):
    """The operators that run, in order, with their plain numbers."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(f"{func} {[a for a in args if isinstance(a, (int, float))]}")
        return func(*args, **(kwargs or {}))


class References:
    """kind: float64, or float32 (TF32 off) where the model does not run in float64; `why` says why."""

    def __init__(self, task: Task):
        self.task, self.kind, self.why = task, "float64", ""
        self._wide = None
        self._errors = {}

    def weights_changed(self) -> None:
        """The float64 copy takes the new values in place: a deep copy of a large model is slow."""
        if self._wide is None:
            return
        with torch.no_grad():
            for to, e in zip(entries(self._wide), entries(self.task.model)):
                if is_float(e.tensor):
                    to.tensor.copy_(e.tensor)

    def eager(self, leaves: list) -> list[torch.Tensor]:
        return self.task.run(leaves)

    def exact(self, leaves: list) -> list[torch.Tensor]:
        """Floating outputs in float64, the others as they are."""
        if self.kind == "float64":
            try:
                return self._in_float64(leaves)
            except Exception as e:  # named in the answer by `kind` and `why`
                self.kind, self.why = "float32", self._reason(e)
                self._wide = None
                if self.task.device.type == "cuda":
                    torch.cuda.empty_cache()
        return [wide(t) for t in self._in_float32(leaves)]

    @staticmethod
    def _reason(e: Exception) -> str:
        text = e.text if isinstance(e, Refusal) else str(e)
        return "not enough memory for float64" if out_of_memory(e) else (text.splitlines() or [""])[0][:200]

    def _in_float64(self, leaves: list) -> list[torch.Tensor]:
        if self._wide is None:
            self._wide = cast(copy.deepcopy(self.task.model), wide)
        with default_dtype(torch.float64):
            out = self.task.run([wide(t) for t in leaves], self._wide)
        if any(t.is_floating_point() and t.dtype != torch.float64 for t in out):
            raise Refusal("task", "forward casts to another type")
        return out

    def is_another_graph(self, leaves: list) -> bool:
        """Does forward do other things with doubles than with its own types?"""
        def operators(model, leaves) -> list[str]:
            with Operators() as seen:
                self.task.run(leaves, model)
            return seen.names
        with default_dtype(torch.float64):
            double = operators(self._wide, [wide(t) for t in leaves])
        return double != operators(self.task.model, leaves)

    def _in_float32(self, leaves: list) -> list[torch.Tensor]:
        with tf32(False):
            return self._cast_run(leaves, lambda t: t.float())

    def _cast_run(self, leaves: list, change) -> list[torch.Tensor]:
        model = cast(copy.deepcopy(self.task.model), change)
        return self.task.run([change(t) if is_float(t) else t for t in leaves], model)

    def in_class(self, leaves: list, name: str) -> list[torch.Tensor]:
        """The model computed in precision `name` on the same inputs."""
        if name == "fp32" or name == "tf32" and self.task.device.type == "cuda":
            with tf32(name == "tf32"):
                return self._cast_run(leaves, lambda t: t.float())
        with tf32(False):
            if name in REAL:
                with contextlib.suppress(Exception):  # an operator that this type does not have: operands are rounded
                    return self._cast_run(leaves, lambda t: t.to(REAL[name]))
            return self._cast_run(leaves, lambda t: round_mantissa(t, MANTISSA[name]))

    def tried(self, leaves: list, name: str) -> list[torch.Tensor] | None:
        """None where the model does not run in that class."""
        try:
            return self.in_class(leaves, name)
        except Exception:
            return None

    def class_errors(self, leaves: list, family: str, name: str, error_of) -> list[float] | None:
        """error_of(outputs) of a run in that class: once for each family, None where it does not run."""
        key = family, name
        if key not in self._errors:
            outs = self.tried(leaves, name)
            self._errors[key] = error_of(outs) if outs is not None else None
        return self._errors[key]
