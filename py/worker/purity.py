"""What a call does besides answering: state that it carries on, inputs that it writes, random numbers that it draws.

Tensor state that forward reads and changes becomes an argument and an output (attr:path). The rest is not native.
"""
import random
import sys

import torch

from .load import Task
from .protocol import Refusal
from .signature import is_float
from .state import entries, plain_values

SAME = {torch.float64: 1e-6, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 5e-2}


def same(a: list[torch.Tensor], b: list[torch.Tensor]) -> bool:
    """Equal up to the order in which a reduction may add."""
    if [t.shape for t in a] != [t.shape for t in b]:
        return False
    for x, y in zip(a, b):
        if not is_float(x):
            if float((x != y).double().mean() if x.numel() else 0) > 1e-3:
                return False
            continue
        x, y = x.double(), y.double()
        finite = torch.isfinite(x)
        if not torch.equal(finite, torch.isfinite(y)):
            return False
        scale = float(y[finite].abs().max()) if bool(finite.any()) else 0.0
        if not bool(((x - y).abs()[finite] <= SAME.get(a[0].dtype, 1e-4) * scale).all()):
            return False
    return True


def _generators() -> list:
    state = [torch.get_rng_state(), random.getstate()]
    if torch.cuda.is_initialized():
        state.append(torch.cuda.get_rng_state())
    if "numpy" in sys.modules:
        state.append(str(sys.modules["numpy"].random.get_state()))
    return state


def _moved(before: list, after: list) -> bool:
    return any(not torch.equal(b, a) if isinstance(b, torch.Tensor) else b != a for b, a in zip(before, after))


def _written(task: Task, leaves: list) -> list:
    """Entries of the state whose tensor forward replaces or changes."""
    before = {e.name: (e.tensor, e.tensor.clone()) for e in entries(task.model)}
    task.run(leaves)
    found = []
    for e in entries(task.model):
        held, value = before.get(e.name, (None, None))
        if held is None or e.tensor is not held and not e.is_parameter and e.tensor.data_ptr() != held.data_ptr() \
                or e.tensor.shape != value.shape or not torch.equal(e.tensor, value):
            found.append(e)
    return found


def _matters(task: Task, leaves: list, entry, value: torch.Tensor) -> bool:
    """Does forward read that state before it writes it?"""
    other = value + torch.randn_like(value) * (value.std(correction=0) + 1) if is_float(value) else value + 1
    with task.carrying([entry.name]):
        try:
            return not same(task.run(leaves + [value])[:-1], task.run(leaves + [other])[:-1])
        except Refusal:
            return True


def find_state(task: Task, leaves: list) -> None:
    """Sets task.carried and task.left_out. State made by the first call counts as it is after that call."""
    task.run(leaves)
    for e in _written(task, leaves):
        value = e.tensor.clone()
        if e.is_parameter:
            raise Refusal("task", f"forward changes its parameter '{e.name}', which is not native")
        (task.carried.append if _matters(task, leaves, e, value) else task.left_out.add)(e.name)
    if task.carried:
        task.notes.append("state carried between calls is an argument and an output: " + ", ".join(task.carried))


def refuse_impure(task: Task, leaves: list) -> None:
    """leaves: arguments and carried state."""
    copies = [t.clone() if isinstance(t, torch.Tensor) else t for t in leaves]
    generators, plain = _generators(), plain_values(task.model)
    first = task.run(leaves)
    drew, changed = _moved(generators, _generators()), [k for k, v in plain_values(task.model).items() if plain.get(k, v) != v]
    for t, c in zip(leaves, copies):
        if isinstance(t, torch.Tensor) and t.numel() and not torch.equal(t.contiguous().view(-1).view(torch.uint8),
                                                                         c.contiguous().view(-1).view(torch.uint8)):
            raise Refusal("task", "forward changes its inputs in place, which is not native")
    kept = [t.clone() for t in first]
    if same(kept, task.run(leaves)) and same(kept, task.run(leaves)):
        return
    if changed:
        raise Refusal("task", f"two calls on the same inputs differ: forward keeps state in '{changed[0]}', which is not native")
    if [t.shape for t in kept] != [t.shape for t in task.run(leaves)] or not drew:
        raise Refusal("task", "two calls on the same inputs differ: forward keeps state of its own between calls, which is not native")
    raise Refusal("task", "two calls on the same inputs differ: forward draws random numbers, which is not native")


def refuse_data_shapes(task: Task, leaves: list, others: list) -> None:
    """The same shapes of input must give the same shapes of output."""
    one, two = ([tuple(t.shape) for t in task.run(v)] for v in (leaves, others))
    if one != two:
        raise Refusal("task", f"the shape of an output depends on the data ({one[0]} and {two[0]}), which is not native")
