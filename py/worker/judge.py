"""The comparison: docs/exam.md, 'Values'.

With r the float64 reference and s its standard deviation: every element |a - r| <= tol (s + |r|), and
||a - r|| <= tol ||r - mean r|| (or tol ||r||, where r varies by less than eager's rounding). tol grows to 3 x
eager's own error by the same rule, up to 3 x EAGER_MAX.
"""
import dataclasses
import math

import torch

from . import slices
from .compare import Comparison, Rule, all_finite, far_from, measure, moments, scaled_error, worst_error
from .load import Task
from .reference import CLASSES, References
from .signature import FLOATS
from .values import Values, new_seed

PRESETS = {"cuda-agent": 1e-2, "kernelbench": 1e-4, "strict": 1e-5}
LOW_PUBLISHED = 1e-2  # the published tolerance of half precision
SMALL = 1024  # outputs with fewer elements take their spread over several draws
SPREAD_FLOOR = 1e-5  # s is never less than this share of its value on the task's own inputs
EAGER_MAX = 0.1  # eager may be off by this much: past it a family is not used, single elements are jumps
CALM = 1e-5  # inputs moved by one part in a million may move the answer so far; what moves further is hard to compute, and
# tol grows by slices.HARDNESS times the rest: sums in another order are off by more than one rounding
LOWER = ("tf32", "fp16", "bf16")  # classes that slices leave room for, where the output as a whole does
UNSETTLED_MAX = 0.01  # share of elements that may hang on rounding


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


@dataclasses.dataclass
class Standard:
    """How one output of one input set is judged."""
    rule: Rule
    base: float  # what norms are relative to
    tol_norm: float
    eager_err: float
    eager_norm: float
    unsettled: float = 0.0
    norm_text: str = "||r - mean r||"
    jumps: torch.Tensor | None = None  # elements where eager and float64 took different sides
    slices: list = dataclasses.field(default_factory=list)  # where parts of the output differ in size
    eased: bool = False  # by what is hard to compute: only asked for when something misses


class Question:
    """One input set: its reference, eager's answer, and the standard of every output."""

    def __init__(self, judge: "Judge", leaves: list, family: str):
        self.judge, self.leaves, self.family = judge, leaves, family
        self.exact = [real(t) for t in judge.references.exact(leaves)]
        self.eager = [real(t) for t in judge.references.eager(leaves)]
        self._moved = self._lower = None
        self.standards = [self._standard(i) if e.dtype in FLOATS else None for i, e in enumerate(self.eager)]

    @property
    def moved(self) -> list[list[torch.Tensor]]:
        """References of inputs moved by one part in a million: only asked for when something misses."""
        if self._moved is None:
            nudge = self.judge.values.nudged
            self._moved = [[real(t) for t in self.judge.references.exact(nudge(self.leaves, sign))] for sign in (1.0, -1.0)]
        return self._moved

    @property
    def lower(self) -> list[list[torch.Tensor]]:
        """The model in lower precisions, those that run: only asked for when a slice misses."""
        if self._lower is None:
            runs = (self.judge.references.tried(self.leaves, name) for name in LOWER)
            self._lower = [[real(t).to(e.dtype) for t, e in zip(run, self.eager)] for run in runs if run is not None]
        return self._lower

    # ---- standards ----

    def _standard(self, i: int) -> Standard:
        r, e = self.exact[i], self.eager[i]
        mean, s = moments(r)
        if r.numel() < SMALL:
            s = self.judge.pooled_spread(i, self.family, r)
        s = max(s, SPREAD_FLOOR * self.judge.own_spread.get(i, 0.0))
        c = measure(e, None, r, Rule(s, mean, math.inf))
        base = s * math.sqrt(r.numel()) if r.numel() < SMALL else math.sqrt(c.centered_sq)
        st = Standard(Rule(s, mean, 0.0), base, 0.0, c.max_err, ratio(c.diff_sq, base, r))
        if not st.eager_err <= EAGER_MAX:
            self._set_jumps_aside(st, r, e)
        if not st.eager_norm <= EAGER_MAX:  # what varies in r is below eager's own rounding
            st.eager_norm *= st.base / plain_norm(r) if st.base > 0 else 1.0
            st.base, st.norm_text = plain_norm(r), "||r||"
        st.rule.tol = max(self.judge.tol, 3 * st.eager_err)
        st.tol_norm = max(self.judge.tol, 3 * st.eager_norm)
        st.rule.published = self._published(st, r, e)
        st.slices = [slices.standard(r, e, dim, s, self.judge.tol, st.jumps) for dim in self.judge.uneven.get(i, ())]
        return st

    def _set_jumps_aside(self, st: Standard, r: torch.Tensor, e: torch.Tensor) -> None:
        """Where round, sign or a comparison sent eager to another value, that says nothing of its precision."""
        error = scaled_error(e, r, st.rule.s)
        jumps = ~(error <= EAGER_MAX)
        st.unsettled = float(jumps.double().mean())
        if st.unsettled > UNSETTLED_MAX:
            st.eager_err = EAGER_MAX
            return
        st.jumps = jumps
        st.eager_err = float(error.masked_fill_(jumps, 0.0).max())
        calm = torch.isfinite(r) & ~jumps
        st.eager_norm = ratio(float((e.double() - r)[calm].square().sum()), st.base, r)

    def _published(self, st: Standard, r: torch.Tensor, e: torch.Tensor) -> float:
        """Tolerance of the published rule |a - eager| <= t (1 + |eager|); 0: not asked."""
        if self.family != "own" or self.judge.preset == "strict":
            return 0.0
        low = LOW_PUBLISHED if e.dtype in (torch.float16, torch.bfloat16) else 0.0
        off = worst_error(e, r, 1.0)
        return max(self.judge.tol, low, 3 * min(off, EAGER_MAX))

    # ---- verdicts on answers ----

    def findings(self, answers: list[torch.Tensor]) -> list[Finding]:
        out = []
        for i, a in enumerate(map(real, answers)):
            out.append(self._float(i, a) if self.standards[i] else self._exact(i, a))
        return out

    def passes(self, answers: list[torch.Tensor]) -> bool:
        return not any(f.misses for f in self.findings(answers))

    def _float(self, i: int, a: torch.Tensor) -> Finding:
        st, r = self.standards[i], self.exact[i]
        c = measure(a, self.eager[i] if st.rule.published else None, r, st.rule)
        norm = ratio(c.diff_sq, st.base, r)
        if (c.misses or not norm <= st.tol_norm) and self._ease(i):
            c = measure(a, self.eager[i] if st.rule.published else None, r, st.rule)
        if 0 < c.misses + c.far <= allowed(r.numel()):
            norm = self._settle(i, a, c, norm)
        reason = ""
        if c.misses:
            reason = f"|a - r| <= {st.rule.tol:.2g} (s + |r|), s = {st.rule.s:.3g}"
        elif c.far:
            c.misses, c.first = c.far, c.first_far
            reason = f"|a - eager| <= {st.rule.published:.2g} (1 + |eager|)"
        elif r.numel() > 1 and not norm <= st.tol_norm:
            c.misses, c.first = r.numel(), 0
            reason = f"||a - r|| <= {st.tol_norm:.2g} {st.norm_text}"
        for sl in st.slices if not c.misses else ():
            reason = reason or self._in_slices(i, a, sl, c)
        return self._finding(i, a, c, norm, reason)

    def _in_slices(self, i: int, a: torch.Tensor, sl: slices.Slices, c: Comparison) -> str:
        """The rule that a slice misses, or nothing."""
        st, r = self.standards[i], self.exact[i]
        found, reason = slices.misses(a, r, sl, st.jumps)
        if reason:
            lower = [t[i] for t in self.lower if self._holds(i, t[i])]
            sl = slices.eased(sl, r, [m[i].view(r.shape) for m in self.moved], lower)
            found, reason = slices.misses(a, r, sl, self._forgiven(i, a).view(r.shape))
        c.misses, c.first = (found.misses, found.first) if reason else (0, -1)
        return reason

    def _holds(self, i: int, a: torch.Tensor) -> bool:
        """Rules 1 and 2."""
        st, r = self.standards[i], self.exact[i]
        c = measure(a, None, r, st.rule)
        return c.misses == 0 and ratio(c.diff_sq, st.base, r) <= st.tol_norm

    def _ease(self, i: int) -> bool:
        """More room where the reference itself moves far with its inputs: was there any?"""
        st, r = self.standards[i], self.exact[i]
        if st.eased:
            return False
        st.eased, tol, norm = True, st.rule.tol, st.tol_norm
        for m in (m[i].view(r.shape) for m in self.moved):
            error = scaled_error(m, r, st.rule.s)
            calm = error <= st.rule.tol  # the others hang on rounding
            if not bool(calm.any()):
                continue
            tol = max(tol, slices.HARDNESS * (float(error[calm].max()) - CALM))
            norm = max(norm, slices.HARDNESS * (ratio(float((m - r)[calm & torch.isfinite(r)].square().sum()), st.base, r) - CALM))
        most = 3 * EAGER_MAX
        eased = min(tol, most) > st.rule.tol or min(norm, most) > st.tol_norm
        st.rule.tol, st.tol_norm = max(st.rule.tol, min(tol, most)), max(st.tol_norm, min(norm, most))
        return eased

    def _settle(self, i: int, a: torch.Tensor, c: Comparison, norm: float) -> float:
        """Elements that hang on rounding may have any of the values that rounding gives them: the norm without them."""
        st, r = self.standards[i], self.exact[i].reshape(-1)
        forgiven, a, e = self._forgiven(i, a), a.reshape(-1), self.eager[i].reshape(-1)
        if not bool(forgiven.any()):
            return norm
        bad = ~(scaled_error(a, r, st.rule.s) <= st.rule.tol) & ~forgiven
        c.misses, c.first = int(bad.sum()), first(bad)
        if st.rule.published:
            far = far_from(a, e, st.rule.published) & ~forgiven
            c.far, c.first_far = int(far.sum()), first(far)
        calm = torch.isfinite(r) & ~forgiven
        return ratio(float((a.double() - r)[calm].square().sum()), st.base, r)

    def _forgiven(self, i: int, a: torch.Tensor) -> torch.Tensor:
        """Flat: elements that hang on rounding and have one of the values that it gives them."""
        st, r = self.standards[i], self.exact[i].reshape(-1)
        a, e = a.reshape(-1), self.eager[i].reshape(-1)
        hanging = torch.zeros_like(r, dtype=torch.bool) if st.jumps is None else st.jumps.reshape(-1).clone()
        near = scaled_error(a, e.double(), st.rule.s) <= st.rule.tol
        for m in (m[i].reshape(-1) for m in self.moved):
            hanging |= ~(scaled_error(m, r, st.rule.s) <= st.rule.tol)
            near |= scaled_error(a, m, st.rule.s) <= st.rule.tol
        return hanging & near

    def _exact(self, i: int, a: torch.Tensor) -> Finding:
        """Integers and bools: equal; where float64, eager and nudged float64 disagree, any of theirs."""
        r = self.exact[i].to(self.eager[i].dtype)
        bad = a != r
        if 0 < int(bad.sum()) <= 2 * allowed(r.numel()):
            bad &= a != self.eager[i]
            for m in self.moved:
                bad &= a != m[i].to(r.dtype)
        bad = bad.reshape(-1)
        c = Comparison(misses=int(bad.sum()), first=first(bad))
        c.max_err = float(c.misses > 0)
        return self._finding(i, a, c, c.misses / max(1, r.numel()), "equal" if c.misses else "")

    def _finding(self, i: int, a: torch.Tensor, c: Comparison, norm: float, reason: str) -> Finding:
        got, want = ((float(t.reshape(-1)[c.first]) for t in (a, self.exact[i])) if c.misses and c.first >= 0 else (0.0, 0.0))
        if not math.isfinite(got):
            reason += f"; it is {got}"
        tol = self.standards[i].rule.tol if self.standards[i] else 0.0
        return Finding(self.judge.names[i], a.numel(), c.misses, c.first if c.misses else -1, c.max_err, norm, got, want, reason, tol)

    # ---- facts about the task ----

    def finite(self) -> bool:
        return all(all_finite(t) for t in self.exact + self.eager)

    def unsettled(self) -> float:
        """Largest share of one output's elements that hang on rounding."""
        worst = max((st.unsettled for st in self.standards if st), default=0.0)
        for i, st in enumerate(self.standards):
            if st is None and self.exact[i].numel():
                r = self.exact[i].to(self.eager[i].dtype)
                off = r != self.eager[i]
                for m in self.moved:
                    off = off | (r != m[i].to(r.dtype))
                worst = max(worst, float(off.double().mean()))
        return worst

    def precision(self, answers: list[torch.Tensor]) -> tuple[str, float]:
        """The most precise class whose own error is at least a third of the answer's."""
        which = [i for i, st in enumerate(self.standards) if st]

        def errors(outs: list[torch.Tensor]) -> list[float]:
            found = []
            for i in which:
                st, r = self.standards[i], self.exact[i]
                a = real(outs[i]).to(self.eager[i].dtype)
                found.append(ratio(measure(a, None, r, Rule(st.rule.s, st.rule.mean, math.inf)).diff_sq, st.base, r))
            return found

        if not which:
            return "fp32", 0.0
        mine = errors(answers)
        for name in CLASSES:
            theirs = self.judge.references.class_errors(self.leaves, self.family, name, errors)
            # Half an ulp of the output's type is nobody's fault.
            slack = [torch.finfo(self.eager[i].dtype).eps / 16 for i in which]
            if theirs is not None and all(m <= 3 * t + s for m, t, s in zip(mine, theirs, slack)):
                return name, max(mine)
        return "none", max(mine)


class Judge:
    def __init__(self, task: Task, values: Values, references: References, preset: str, names: list[str]):
        self.task, self.values, self.references, self.names = task, values, references, names
        self.preset, self.tol = preset, PRESETS[preset]
        self.own_spread, self.uneven, self._pools = {}, {}, {}

    def question(self, leaves: list, family: str) -> Question:
        return Question(self, leaves, family)

    def new_question(self, family: str) -> Question:
        return Question(self, self.values.inputs(new_seed(), family), family)

    def learn_spread(self) -> None:
        """The spread of every output on the task's own inputs: the floor under s in other families; and of its slices."""
        self.own_spread, self.uneven, self._pools = {}, {}, {}
        q = self.new_question("own")
        for i, st in enumerate(q.standards):
            if st:
                self.own_spread[i] = st.rule.s
                self.uneven[i] = slices.uneven(q.exact[i], st.rule.s)

    def pooled_spread(self, i: int, family: str, r: torch.Tensor) -> float:
        """Of a small output: over this and four more draws."""
        if family not in self._pools:
            draws = [self.references.exact(self.values.inputs(new_seed(), family)) for _ in range(4)]
            self._pools[family] = [[real(o).double().flatten() for o in d] for d in draws]
        return moments(torch.cat([d[i] for d in self._pools[family]] + [r.double().flatten()]))[1]


def real(t: torch.Tensor) -> torch.Tensor:
    """Complex numbers are two reals."""
    return torch.view_as_real(t.resolve_conj()) if t.is_complex() else t


def plain_norm(r: torch.Tensor) -> float:
    return float(torch.where(torch.isfinite(r), r, 0.0).norm()) if r.numel() else 0.0


def ratio(diff_sq: float, base: float, r: torch.Tensor) -> float:
    """||a - r|| over the base; a constant reference is measured by its own size."""
    if not base > 0:
        base = plain_norm(r)
    if base > 0:
        return math.sqrt(diff_sq) / base if math.isfinite(diff_sq) else math.inf
    return 0.0 if diff_sq == 0 else math.inf


def allowed(n: int) -> int:
    return max(1, int(n * UNSETTLED_MAX))


def first(bad: torch.Tensor) -> int:
    return int(bad.to(torch.uint8).argmax()) if bool(bad.any()) else -1
