"""Is this task sound? What would pass without doing the work, by the comparison that pays."""
import torch

from .judge import UNSETTLED_MAX, Judge, Question
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


class Checker:
    def __init__(self, task: Task, weights: Weights, judge: Judge, families: list[str]):
        self.task, self.weights, self.judge, self.families = task, weights, judge, families

    def _passes(self, answer_of) -> bool:
        """Is answer_of(question) taken for right on every family? One that refuses it is enough."""
        return all(q.passes(answer_of(q)) for q in map(self.judge.new_question, self.families))

    def _other_input(self, q: Question) -> list[torch.Tensor]:
        return self.judge.new_question(q.family).eager

    def _constant(self, q: Question) -> list[torch.Tensor]:
        """The mean of each output; of one element, another draw's: its own would be the answer itself."""
        return [_flat_mean(t if t.numel() > 1 else o) for t, o in zip(q.eager, self._other_input(q))]

    def _mean_of_others(self, q: Question) -> list[torch.Tensor]:
        """Element by element over three other draws."""
        drawn = [self._other_input(q) for _ in range(3)]
        return [torch.stack([t.double() for t in ts]).mean(0).to(ts[0].dtype) if ts[0].dtype in FLOATS else ts[0]
                for ts in zip(*drawn)]

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
        facts = {
            "eager": True, "compile": compiled["ready"],
            "compile_agrees": compiled["ready"] and q.passes(compiled_answer(q.leaves)),
            "deterministic": same(q.eager, self.judge.references.eager(q.leaves)),
            "hidden_state": bool(self.task.carried),
            "finite": q.finite(),
            "zero_passes": self._passes(lambda q: [torch.zeros_like(t) for t in q.eager]),
            "constant_passes": self._passes(self._constant),
            "other_input_passes": self._passes(self._other_input),
            "mean_passes": self._passes(self._mean_of_others),
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
        (facts["zero_passes"], "an output of zeros passes the comparison on every family of inputs"),
        (facts["constant_passes"] and not facts["zero_passes"], "a constant output passes the comparison on every family of inputs"),
        (facts["other_input_passes"], "the answer for other inputs passes: the output hardly depends on the inputs"),
        (facts["mean_passes"] and not facts["other_input_passes"],
         "the mean of other inputs' answers passes: the output hardly depends on the inputs"),
        (facts["weight_dependent"] is False, "the answer for other weights passes: the output hardly depends on the weights"),
        (facts["unsettled_share"] > UNSETTLED_MAX,
         f"{facts['unsettled_share']:.1%} of an output's elements hang on rounding: no answer can be told from chance"),
    ]
    return [text for wrong, text in rows if wrong]
