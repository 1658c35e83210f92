"""Is this task sound? Facts by running it, and what would pass without doing the work."""
import time

import torch

from .load import Task, state_of
from .judge import Judge, tf32
from .values import FLOATS, Values, new_seed

UNSETTLED_MAX = 0.01


def hidden_state(task: Task, leaves: list) -> list[str]:
    """Names of the state that one call changes."""
    before = {n: t.clone() for n, t in state_of(task.model)}
    task.run_eager(task.nest(leaves))
    after = dict(state_of(task.model))
    return [n for n, t in after.items() if n not in before or t.shape != before[n].shape or not torch.equal(t, before[n])]


def mutated_inputs(task: Task, leaves: list) -> bool:
    copies = [t.clone() if isinstance(t, torch.Tensor) else t for t in leaves]
    task.run_eager(task.nest(copies))
    return any(isinstance(t, torch.Tensor) and not torch.equal(t, c) and not (t != t).any()
               for t, c in zip(leaves, copies))


def same(a: list[torch.Tensor], b: list[torch.Tensor]) -> bool:
    """Equal up to the order in which a reduction may add."""
    return all(x.shape == y.shape and torch.allclose(x.double(), y.double(), rtol=1e-4, atol=1e-6, equal_nan=True)
               for x, y in zip(a, b))


def deterministic(task: Task, leaves: list) -> bool:
    first = task.run_eager(task.nest(leaves))
    torch.manual_seed(new_seed() & 0xFFFFFFFF)
    return same(first, task.run_eager(task.nest(leaves)))


class Checker:
    def __init__(self, task: Task, values: Values, judge: Judge, families: list[str]):
        self.task, self.values, self.judge, self.families = task, values, judge, families

    def _passes(self, answer_of) -> bool:
        """Would this answer be taken for right on every family? answer_of(refs, family, leaves) -> tensors."""
        for family in self.families:
            leaves = self.values.inputs(new_seed(), family)
            eager = self.judge.eager(leaves)
            answer = [a.to(e.dtype) for a, e in zip(answer_of(eager, family, leaves), eager)]
            if any(f.misses for f in self.judge.judge(answer, leaves, family)):
                return False
        return True

    def _other_input(self, eager, family, leaves):
        return self.judge.eager(self.values.inputs(new_seed(), family))

    def _weights_matter(self) -> bool | None:
        named = [t for n, t in state_of(self.task.model) if t.dtype in FLOATS and n not in self.values.kept]
        if not named:
            return None
        leaves = self.values.inputs(new_seed(), self.families[-1])
        before = self.judge.eager(leaves)
        self.values.redraw(new_seed())
        self.judge.weights_changed()
        return any(f.misses for f in self.judge.judge(before, leaves, self.families[-1]))

    def _unsettled(self) -> float:
        """Share of integer outputs on which float64 and a nudged float64 disagree."""
        leaves = self.values.inputs(new_seed(), "own")
        e = self.judge.eager(leaves)
        r = self.judge.reference(leaves)
        shares = [float((a.to(b.dtype) != b).double().mean()) for a, b in zip(r, e) if b.dtype not in FLOATS and b.numel()]
        return max(shares, default=0.0)

    def facts(self, compile_ready: dict) -> dict:
        leaves = self.values.inputs(new_seed(), "own")
        eager = self.judge.eager(leaves)
        facts = {
            "eager": True, "compile": compile_ready["ready"],
            "deterministic": deterministic(self.task, leaves),
            "hidden_state": bool(hidden_state(self.task, leaves)),
            "finite": all(bool(torch.isfinite(t).all()) for t in eager if t.dtype in FLOATS),
            "zero_passes": self._passes(lambda e, f, x: [torch.zeros_like(t) for t in e]),
            "mean_passes": self._passes(lambda e, f, x: [t.double().mean().expand(t.shape) if t.dtype in FLOATS
                                                         else t.flatten()[:1].expand(t.numel()).view(t.shape) for t in e]),
            "other_input_passes": self._passes(self._other_input),
            "unsettled_share": self._unsettled(),
            "weight_dependent": self._weights_matter(),
        }
        facts["input_dependent"] = not facts["other_input_passes"]
        facts["constant_passes"] = facts["mean_passes"] or facts["zero_passes"]
        return facts


def sentences(facts: dict) -> list[str]:
    """What is wrong with the task, for a person."""
    rows = [
        (not facts["deterministic"], "two calls on the same inputs differ: forward draws random numbers"),
        (facts["hidden_state"], "forward changes state that the next call sees"),
        (not facts["finite"], "the outputs are not finite on the task's own inputs"),
        (facts["zero_passes"], "an output of zeros passes the comparison"),
        (facts["mean_passes"] and not facts["zero_passes"], "a constant output (its mean) passes the comparison"),
        (facts["other_input_passes"], "the answer for other inputs passes: the output does not depend on the inputs"),
        (facts["weight_dependent"] is False, "the answer for other weights passes: the output does not depend on the weights"),
        (facts["unsettled_share"] > UNSETTLED_MAX,
         f"{facts['unsettled_share']:.1%} of the integer outputs hang on rounding"),
    ]
    return [text for wrong, text in rows if wrong]


# ---- the floor: a model, never a verdict ----

def count_flops(task: Task) -> int:
    from torch.utils.flop_counter import FlopCounterMode
    try:
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            task.forward(task.model, task.example)
        return counter.get_total_flops()
    except Exception:
        return 0


def bandwidth(memory) -> float:
    """Bytes a second, read plus written, of a large copy; best of five."""
    n = (1 << 30) if memory.cuda else (64 << 20)
    a = torch.ones(n // 4, device=memory.device)
    b = torch.empty_like(a)
    return 2 * n / best_time(lambda: b.copy_(a), memory)


def peak_flops(memory, low: bool) -> float:
    """Multiply-adds x 2 a second of a large matrix product, TF32 or the low-precision type on cuda; best of five."""
    n = 8192 if memory.cuda else 1024
    dtype = torch.bfloat16 if low and memory.cuda else torch.float32
    a = torch.randn(n, n, device=memory.device).to(dtype)
    with tf32(True):
        return 2 * n ** 3 / best_time(lambda: a @ a, memory)


def best_time(work, memory) -> float:
    best = float("inf")
    for _ in range(5):
        memory.sync()
        start = time.perf_counter()
        work()
        memory.sync()
        best = min(best, time.perf_counter() - start)
    return best
