"""Is this task sound? What would pass without doing the work, by the comparison that pays."""
import torch

from .judge import UNSETTLED_MAX, Judge, Question, real
from .load import Task
from .purity import same
from .signature import FLOATS
from .values import new_seed
from .weights import Weights


def always_the_same(task: Task, leaves: list, others: list) -> bool:
    """Every output is one number on the task's own inputs, the same for two draws, with the constructor's weights."""
    for a, b in zip(task.run(leaves), task.run(others)):
        if not a.numel() or not bool((a == a.reshape(-1)[0]).all()) or not bool((b == a.reshape(-1)[0]).all()):
            return False
    return True


def _flat_mean(t: torch.Tensor) -> torch.Tensor:
    if t.dtype in FLOATS:
        return t.double().mean().to(t.dtype).expand(t.shape)
    return t.reshape(-1)[:1].expand(t.numel()).reshape(t.shape) if t.numel() else t


def _zeros(judge: Judge, q: Question) -> list[torch.Tensor]:
    return [torch.zeros_like(t) for t in q.eager]


def _other_input(judge: Judge, q: Question) -> list[torch.Tensor]:
    return [real(t) for t in judge.references.eager(judge.values.inputs(new_seed(), q.family))]


def _constant(judge: Judge, q: Question) -> list[torch.Tensor]:
    """The mean of each output; of one element, another draw's: its own would be the answer itself."""
    return [_flat_mean(t if t.numel() > 1 else o) for t, o in zip(q.eager, _other_input(judge, q))]


def _mean_of_others(judge: Judge, q: Question) -> list[torch.Tensor]:
    """Element by element over three other draws."""
    drawn = [_other_input(judge, q) for _ in range(3)]
    return [torch.stack([t.double() for t in ts]).mean(0).to(ts[0].dtype) if ts[0].dtype in FLOATS else ts[0]
            for ts in zip(*drawn)]


SHORTCUTS = {"zero": _zeros, "constant": _constant, "other_input": _other_input}  # answers without the work
SENTENCES = {
    "zero": "an output of zeros passes the comparison on every family of inputs",
    "constant": "a constant output passes the comparison on every family of inputs",
    "other_input": "the answer for other inputs passes: the output hardly depends on the inputs",
    "mean": "the mean of other inputs' answers passes: the output hardly depends on the inputs",
}


def passing(judge: Judge, families: list[str], shortcuts: dict = SHORTCUTS) -> list[str]:
    """Shortcuts that are taken for right on every family. One that refuses it is enough."""
    left = list(shortcuts)
    for family in families:
        q = judge.new_question(family)
        left = [name for name in left if q.passes(shortcuts[name](judge, q))]
        if not left:
            break
    return left


def without_work(found: list[str]) -> list[str]:
    """For a person, of what passes the plainest: who passes by zeros passes by any constant."""
    return [SENTENCES[name] for name in found[:1]]


class Checker:
    def __init__(self, task: Task, weights: Weights, judge: Judge, families: list[str]):
        self.task, self.weights, self.judge, self.families = task, weights, judge, families

    def _weights_matter(self) -> bool | None:
        """Does the answer for other weights fail somewhere? Leaves new weights behind."""
        if not self.weights.changing():
            return None
        kept = []
        for family in self.families:
            leaves = self.judge.values.inputs(new_seed(), family)
            kept.append((family, leaves, self.judge.references.eager(leaves)))
        self.weights.redraw(new_seed())
        self.judge.references.weights_changed()
        return any(not self.judge.question(leaves, family).passes(answer) for family, leaves, answer in kept)

    def facts(self, compiled: dict, compiled_answer) -> dict:
        """compiled: the compile arm's answer to prepare; compiled_answer(leaves) runs it."""
        q = self.judge.new_question("own")
        shortcuts = passing(self.judge, self.families, SHORTCUTS | {"mean": _mean_of_others})
        facts = {
            "eager": True, "compile": compiled["ready"],
            "compile_agrees": compiled["ready"] and q.passes(compiled_answer(q.leaves)),
            "deterministic": same(q.eager, self.judge.references.eager(q.leaves)),
            "hidden_state": bool(self.task.carried),
            "finite": q.finite(),
            **{f"{name}_passes": name in shortcuts for name in SENTENCES},
            "unsettled_share": q.unsettled(),
            "weight_dependent": self._weights_matter(),
        }
        facts["input_dependent"] = not facts["other_input_passes"]
        return facts


def sentences(facts: dict, starts_constant: bool) -> list[str]:
    """What is wrong with the task, for a person."""
    rows = [
        (not facts["deterministic"], "two calls on the same inputs differ"),
        (not facts["finite"], "the outputs are not finite on the task's own inputs"),
        (starts_constant, "a constant output is right as the file makes weights and inputs: every element is one number"),
        *((True, text) for text in without_work([name for name in SENTENCES if facts[f"{name}_passes"]])),
        (facts["weight_dependent"] is False, "the answer for other weights passes: the output hardly depends on the weights"),
        (facts["unsettled_share"] > UNSETTLED_MAX,
         f"{facts['unsettled_share']:.1%} of an output's elements hang on rounding: no answer can be told from chance"),
    ]
    return [text for wrong, text in rows if wrong]
