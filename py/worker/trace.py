"""The model as a graph of Core ATen operators: docs/graph.md."""
import math
import operator

import torch

from .load import DTYPES, Task, storage_key

CONST_MAX = 64


class RefusalError(Exception):
    """What cannot be traced, in one line."""


def argument(a, ids: dict):
    """One `arg` of docs/graph.md."""
    if isinstance(a, torch.fx.Node):
        return {"v": ids[a]}
    if a is None:
        return None
    if isinstance(a, bool):
        return {"b": a}
    if isinstance(a, int):
        return {"i": a}
    if isinstance(a, float):
        return {"r": a if math.isfinite(a) else {math.inf: "inf", -math.inf: "-inf"}.get(a, "nan")}
    if isinstance(a, str):
        return {"s": a}
    if isinstance(a, torch.dtype):
        return {"d": DTYPES.get(a, str(a))}
    if isinstance(a, (list, tuple)):
        return {"l": [argument(x, ids) for x in a]}
    if isinstance(a, (torch.device, torch.layout, torch.memory_format)):
        return {"s": str(a)}
    raise RefusalError(f"an argument of type {type(a).__name__} in the traced graph")


class Tracer:
    def __init__(self, task: Task):
        self.task, self.values, self.ids, self.nodes = task, [], {}, []
        self.parts = {}  # node with several results -> ids of them

    def value(self, node, fake: torch.Tensor) -> int:
        if any(not isinstance(n, int) for n in fake.shape):
            raise RefusalError(f"'{node}' has a shape that depends on data")
        if fake.dtype not in DTYPES:
            raise RefusalError(f"'{node}' has dtype {fake.dtype}")
        self.values.append({"id": len(self.values), "name": str(node), "dtype": DTYPES[fake.dtype],
                            "shape": list(fake.shape), "stride": list(fake.stride())})
        return len(self.values) - 1

    def constant(self, vid: int, t: torch.Tensor) -> None:
        if t.numel() > CONST_MAX:
            raise RefusalError(f"a constant tensor of {t.numel()} elements that is no parameter")
        self.values[vid]["const"] = [float(x) for x in t.flatten().tolist()]

    def call(self, node) -> None:
        if node.target is operator.getitem:
            self.ids[node] = self.parts[node.args[0]][node.args[1]]
            return
        fake = node.meta.get("val")
        several = isinstance(fake, (list, tuple))
        outs = [self.value(node, f) if isinstance(f, torch.Tensor) else -1 for f in (fake if several else [fake])]
        if several:
            self.parts[node] = outs
        else:
            self.ids[node] = outs[0]
        self.nodes.append({"op": str(node.target), "in": [argument(a, self.ids) for a in node.args],
                           "kw": {k: argument(a, self.ids) for k, a in node.kwargs.items()}, "out": outs})

    def run(self) -> dict:
        task = self.task
        if task.carried:
            raise RefusalError(f"the model keeps state between calls ('{task.carried[0]}')")
        state = task.state()
        args = tuple(task.example) if isinstance(task.example, (list, tuple)) else (task.example,)
        kwargs = {}
        if isinstance(task.example, dict):
            args, kwargs = (), dict(task.example)
        with torch.no_grad():
            exported = torch.export.export(task.model, args, kwargs, strict=False).run_decompositions()
        leaves = [v for _, v in task.leaves(task.example)]
        inputs, params = [None] * len(leaves), [None] * len(state)
        places = {storage_key(t): i for i, (_, t) in reversed(list(enumerate(state)))}
        names = {n: i for i, (n, _) in enumerate(state)}
        specs = {s.arg.name: s for s in exported.graph_signature.input_specs if hasattr(s.arg, "name")}
        user = iter(range(len(leaves)))
        for node in exported.graph.nodes:
            if node.op == "placeholder":
                self.placeholder(node, specs.get(node.name), user, (inputs, params, places, names), exported)
            elif node.op == "call_function":
                self.call(node)
            elif node.op == "output":
                outputs = [self.ids[n] for n in node.args[0]]
        return {"v": 1, "values": self.values, "inputs": inputs, "params": params, "outputs": outputs, "nodes": self.nodes}

    def placeholder(self, node, spec, user, where, exported) -> None:
        inputs, params, places, names = where
        fake = node.meta.get("val")
        kind = spec.kind.name if spec else "USER_INPUT"
        if kind == "USER_INPUT":
            i = next(user)
            if isinstance(fake, torch.Tensor):
                self.ids[node] = inputs[i] = self.value(node, fake)
            return
        vid = self.ids[node] = self.value(node, fake)
        if spec.target in names:
            params[names[spec.target]] = vid
            return
        held = exported.constants.get(spec.target)
        if held is not None and storage_key(held) in places:
            params[places[storage_key(held)]] = vid
        elif held is not None:
            self.constant(vid, held)
        else:
            raise RefusalError(f"'{spec.target}' is neither a parameter nor a constant")


def trace(task: Task) -> dict:
    try:
        return Tracer(task).run()
    except RefusalError:
        raise
    except Exception as e:
        text = (str(e).splitlines() or [""])[0][:300]
        raise RefusalError(f"torch.export does not take this model: {type(e).__name__}: {text}") from e
