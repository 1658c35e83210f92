"""Reference, tolerance and precision class: docs/exam.md, 'Values'.

With r the float64 reference and s its standard deviation: every element |a - r| <= tol (s + |r|), and
||a - r|| <= tol ||r - mean r||. tol grows to 3 x eager's own error by the same rule. Where r varies by less than
eager's rounding the second is ||a - r|| <= tol ||r||.
"""
import contextlib
import copy
import dataclasses

import torch

from .compare import compare
from .load import Task
from .values import FLOATS, Values, is_float, new_seed

PRESETS = {"cuda-agent": 1e-2, "kernelbench": 1e-4, "strict": 1e-5}
SMALL = 1024  # outputs with fewer elements take their spread over several draws
CLASSES = ("fp32", "tf32", "fp16", "bf16", "fp8")
ROUNDED = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp8": torch.float8_e4m3fn}


@contextlib.contextmanager
def tf32(allowed: bool):
    """Matmul and convolution with or without TF32; PyTorch's own setting comes back afterwards."""
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before


def wide(t):
    return t.double() if is_float(t) else t


def round_mantissa(t: torch.Tensor, bits: int) -> torch.Tensor:
    """float32 with `bits` bits of mantissa, to nearest."""
    drop = 23 - bits
    raw = t.float().contiguous().view(torch.int32)
    return (((raw + (1 << (drop - 1))) >> drop) << drop).view(torch.float32)


@dataclasses.dataclass
class Finding:
    output: str
    n: int
    misses: int
    first: int
    max_err: float
    rel_l2: float
    got: float
    want: float
    reason: str
    tol: float

    def row(self, family: str, set_index: int) -> dict:
        return {"set": set_index, "family": family} | dataclasses.asdict(self)


class Judge:
    def __init__(self, task: Task, values: Values, preset: str, names: list[str]):
        self.task, self.values, self.names = task, values, names
        self.preset, self.tol = preset, PRESETS[preset]
        self.reference_kind = "float64"
        self._wide_model = None
        self.small_spread = {}
        low = any(is_float(t) and t.dtype in (torch.float16, torch.bfloat16) for t in self.values.example)
        self.low = low or next((p.dtype in (torch.float16, torch.bfloat16) for p in task.model.parameters()), False)

    def weights_changed(self) -> None:
        self._wide_model = None
        self.small_spread = {}

    # ---- references ----

    def _run(self, model, leaves) -> list[torch.Tensor]:
        with torch.no_grad():
            return [t for _, t in self.task.outputs(self.task.forward(model, self.task.nest(leaves)))]

    def reference(self, leaves) -> list[torch.Tensor]:
        if self.reference_kind == "float64":
            try:
                if self._wide_model is None:
                    self._wide_model = self._widened()
                out = self._run(self._wide_model, [wide(t) for t in leaves])
                if all(o.dtype == torch.float64 or not o.is_floating_point() for o in out):
                    return out
            except Exception:  # double() raises or does not fit: named in the answer
                pass
            self.reference_kind, self._wide_model = "float32", None
        with tf32(False):
            return [wide(t) for t in self._run(copy.deepcopy(self.task.model).float(),
                                               [t.float() if is_float(t) else t for t in leaves])]

    def _widened(self):
        model = copy.deepcopy(self.task.model).double()
        for module in model.modules():
            for key, v in vars(module).items():
                if is_float(v):
                    setattr(module, key, v.double())
        return model

    def eager(self, leaves) -> list[torch.Tensor]:
        return self._run(self.task.model, leaves)

    def in_class(self, leaves, name: str) -> list[torch.Tensor]:
        """The reference computed in precision `name` on the same inputs."""
        real_tf32 = self.task.device.type == "cuda"
        with tf32(name == "tf32"):
            if name == "fp32" or (name == "tf32" and real_tf32):
                return self._cast_run(leaves, lambda t: t.float())
            if name == "tf32":
                return self._cast_run(leaves, lambda t: round_mantissa(t, 10))
            dtype = ROUNDED[name]
            if name != "fp8":
                with contextlib.suppress(Exception):
                    return self._run(copy.deepcopy(self.task.model).to(dtype),
                                     [t.to(dtype) if is_float(t) else t for t in leaves])
            return self._cast_run(leaves, lambda t: t.float().to(dtype).float())

    def _cast_run(self, leaves, cast) -> list[torch.Tensor]:
        model = copy.deepcopy(self.task.model).float()
        with torch.no_grad():
            for t in list(model.parameters()) + list(model.buffers()):
                if is_float(t):
                    t.data.copy_(cast(t.data))
        for module in model.modules():
            for key, v in list(vars(module).items()):
                if is_float(v):
                    setattr(module, key, cast(v))
        return self._run(model, [cast(t) if is_float(t) else t for t in leaves])

    # ---- comparison ----

    def spread(self, index: int, r: torch.Tensor, family: str) -> float:
        if r.numel() >= SMALL:
            return float(r.std(correction=0))
        key = family
        if key not in self.small_spread:
            more = [self.reference(self.values.inputs(new_seed(), family)) for _ in range(4)]
            self.small_spread[key] = [torch.cat([m[i].double().flatten() for m in more]) for i in range(len(more[0]))]
        both = torch.cat([self.small_spread[key][index], r.flatten()])
        both = both[torch.isfinite(both)]
        return float(both.std(correction=0)) if both.numel() else 0.0

    def judge_float(self, index: int, a, r, e, family: str) -> Finding:
        s = self.spread(index, r, family)
        by_eager = compare(e, None, r, s, float("inf"), 0.0)
        tol = max(self.tol, 3 * by_eager.max_err if by_eager.max_err < 1 else 0.0)
        flat = not by_eager.norm < 1  # what varies in r is below eager's own rounding
        of, norm_text = ("plain", "||r||") if flat else ("norm", "||r - mean r||")
        eager_norm = getattr(by_eager, of)
        tol_norm = max(self.tol, 3 * eager_norm if eager_norm < 1 else 0.0)
        published = max(self.tol, 1e-2 if self.low else 0.0, 3 * by_eager.max_err if by_eager.max_err < 1 else 0.0)
        by_rule = family == "own" and self.preset != "strict"
        c = compare(a, e if by_rule else None, r, s, tol, published)
        misses, first, reason = c.misses, c.first, f"|a - r| <= {tol:.2g} (s + |r|), s = {s:.3g}"
        if misses == 0 and c.far:
            misses, first, reason = c.far, c.first_far, f"|a - eager| <= {published:.2g} (1 + |eager|)"
        if misses == 0 and r.numel() > 1 and not getattr(c, of) <= tol_norm:
            misses, first, reason = a.numel(), 0, f"||a - r|| <= {tol_norm:.2g} {norm_text}"
        return self._finding(index, a, r, misses, first, c.max_err, getattr(c, of), reason, tol)

    def judge_exact(self, index: int, a, leaves, r, e, family: str) -> Finding:
        """Integers and bools: equal; where float64, eager and a nudged float64 disagree, any of theirs."""
        bad = a != r
        if bool(bad.any()):
            nudged = self.reference([t * (1 + 1e-6) if is_float(t) else t for t in leaves])[index]
            bad = bad & (a != e) & (a != nudged)
        misses = int(bad.sum())
        first = int(bad.flatten().to(torch.uint8).argmax()) if misses else -1
        share = misses / max(1, a.numel())
        return self._finding(index, a, r, misses, first, float(misses > 0), share, "equal", 0.0)

    def _finding(self, index, a, r, misses, first, max_err, norm, reason, tol) -> Finding:
        at = lambda t: float(t.flatten()[first]) if misses else 0.0  # noqa: E731
        return Finding(self.names[index], a.numel(), misses, first, max_err, norm, at(a), at(r),
                       reason if misses else "", tol)

    def judge(self, answers: list[torch.Tensor], leaves: list, family: str) -> list[Finding]:
        refs, eager = self.reference(leaves), self.eager(leaves)
        out = []
        for i, (a, r, e) in enumerate(zip(answers, refs, eager)):
            if e.dtype in FLOATS:
                out.append(self.judge_float(i, a, r.double(), e, family))
            else:
                out.append(self.judge_exact(i, a, leaves, r.to(e.dtype), e, family))
        return out

    def precision(self, answers: list[torch.Tensor], leaves: list) -> tuple[str, float]:
        """The most precise class whose own error is at least a third of the answer's."""
        refs = [r for r in self.reference(leaves)]
        which = [i for i, a in enumerate(answers) if a.dtype in FLOATS]
        if not which:
            return "fp32", 0.0
        error = lambda outs: max(
            compare(outs[i].to(answers[i].dtype), None, refs[i].double(), 1.0, 1.0, 0.0).norm for i in which)  # noqa: E731
        mine = error(answers)
        for name in CLASSES:
            try:
                if mine <= 3 * error(self.in_class(leaves, name)) + 2e-7:
                    return name, mine
            except Exception:  # an operator without an implementation in that precision
                continue
        return "none", mine
