"""The operations of docs/worker.md over one loaded task."""
import platform
import tempfile
import traceback

import torch

from . import check, purity
from .arms import Arms
from .device_cpu import CpuDevice, timed
from .families import FOLDS
from .floor import floor_of
from .judge import CLASSES, EAGER_MAX, PRESETS, UNSETTLED_MAX, Judge
from .load import Task, first_line, out_of_memory
from .memory import Memory, room
from .protocol import Refusal
from .reference import References
from .signature import aliases, check_native, describe, is_float
from .state import entries
from .values import Values, new_seed
from .weights import Weights

OPERATIONS = ("hello", "load", "check", "trace", "bind", "draw", "run", "sample", "settle", "compare", "device_sum", "probe")


class Server:
    def __init__(self):
        self.device = self.task = self.memory = self.place = None
        self.drawn, self.fds = {}, []

    # ---- hello, load ----

    def hello(self, ask: dict) -> dict:
        threads = int(ask.get("threads", 1))
        if ask["target"] == "cuda":
            from .device_cuda import CudaDevice
            self.device = CudaDevice(int(ask.get("device", 0)), threads)
        else:
            self.device = CpuDevice(0, threads)
        facts = self.device.facts()
        return {"torch": torch.__version__, "cxx11_abi": bool(torch._C._GLIBCXX_USE_CXX11_ABI), "python": platform.python_version(), "cuda": torch.version.cuda or "",
                "device": facts, "threads": threads,
                "versions": f"torch {torch.__version__}; {facts['driver']}; threads {threads}; worker 3"}

    def load(self, ask: dict) -> dict:
        if self.device is None:
            raise Refusal("protocol", "load before hello")
        if ask.get("preset", "cuda-agent") not in PRESETS:
            raise Refusal("protocol", f"no preset {ask['preset']!r}")
        self.task = task = Task(ask["name"], ask["source"], self.device.torch_device, tempfile.mkdtemp(prefix="task-"))
        if self.memory is not None:
            self.memory.close()
        self.place, self.memory, self.drawn = None, None, {}
        leaves = self._pure_leaves()
        self.values = Values(task, leaves)
        others = self.values.inputs(new_seed(), "own")
        purity.refuse_data_shapes(task, leaves, others)
        self.starts_constant = check.always_the_same(task, leaves, others)
        eager_us = sorted(timed(self.device, lambda: task.run(leaves)) for _ in range(3))[1]
        answer = task.run(leaves)
        signature = self._signature(leaves, answer)
        self.references = References(task)
        self.judge = Judge(task, self.values, self.references, ask.get("preset", "cuda-agent"),
                           [v["name"] for v in signature["out"]])
        self.weights = Weights(task)
        self._redraw()
        self.families = self._usable_families(answer)
        state = [t for _, t in task.state()]
        self.memory = Memory(self.device, leaves, self.values.alias, state, aliases(state), self.references.eager(leaves))
        self.arms = Arms(task, self.memory)
        unsound = check.without_work(check.passing(self.judge, self.families))
        sizes = {k: sum(v["bytes"] for v in signature[k] if v["alias"] < 0) for k in signature}
        return {"signature": signature, "bytes": sizes, "families": self.families, "eager_us": eager_us,
                "notes": task.notes, "unsound": unsound}

    def _pure_leaves(self) -> list:
        """Arguments and carried state, once it is known that the rest of forward is a function of them."""
        task = self.task
        arguments = [v for _, v in task.leaves(task.example)]
        for name, v in task.leaves(task.example):
            describe(name, v)
        for e in entries(task.model):
            check_native(e.name, e.tensor)
        purity.find_state(task, arguments)
        held = {e.name: e.tensor.clone() for e in entries(task.model)}
        leaves = arguments + [held[name] for name in task.carried]
        purity.refuse_impure(task, leaves)
        return leaves

    def _signature(self, leaves: list, answer: list) -> dict:
        task = self.task
        names = [name for name, _ in task.leaves(task.example)] + [carried(c) for c in task.carried]
        with torch.no_grad():
            out_names = [name for name, _ in task.outputs(task.call(task.model, leaves)[0])] + [carried(c) for c in task.carried]
        state = task.state()
        # Outputs are contiguous and have memory of their own, whatever eager gives.
        empty = [torch.empty(t.shape, dtype=t.dtype, device=t.device) for t in answer]
        return {"in": [describe(a, v, i) for a, v, i in zip(names, leaves, aliases(leaves))],
                "param": [describe(a, t, i) for (a, t), i in zip(state, aliases([t for _, t in state]))],
                "out": [describe(a, t) for a, t in zip(out_names, empty)]}

    def _redraw(self, touch: bool = False) -> None:
        (self.weights.touch if touch else self.weights.redraw)(new_seed())
        self.references.weights_changed()

    # ---- which inputs ----

    def _usable_families(self, answer: list) -> list[str]:
        """Those on which float64 and eager are finite and near each other."""
        self._settle_own()
        indices = any(not is_float(t) for t in answer)
        found = ["own"]
        for family in self.values.families(indices)[1:]:
            if self._fits(family):
                found.append(family)
        if self.values.fold != "none":
            self.task.notes.append(f"input families are kept in the task's domain ({self.values.fold})")
        return found

    def _settle_own(self) -> None:
        q = self.judge.new_question("own")
        if not q.finite() and self.weights.changing():
            self.weights.mild = True
            self._redraw()
            q = self.judge.new_question("own")
            self.task.notes.append("weights stay near those of the constructor: with fresh ones the outputs are not finite")
        far = max((st.unsettled for st in q.standards if st), default=0.0) > UNSETTLED_MAX
        if far and self.references.kind == "float64" and self.references.is_another_graph(q.leaves):
            self.references.kind, self.references.why = "float32", "forward does other things with doubles"
        if self.references.kind != "float64":
            self.task.notes.append(f"the reference is float32 without TF32: {self.references.why}")
        self.judge.learn_spread()

    def _fits(self, family: str) -> bool:
        """Tries the next way into the domain when the values are outside it; the way that helps is kept."""
        order = FOLDS[FOLDS.index(self.values.fold):]
        for fold in order if family == "normal" else order[:1]:
            before, self.values.fold = self.values.fold, fold
            q = self.judge.new_question(family)
            close = all(st.eager_err < EAGER_MAX and st.unsettled <= UNSETTLED_MAX for st in q.standards if st)
            if q.finite() and close:
                return True
            self.values.fold = before
        return False

    # ---- check, trace ----

    def check(self, ask: dict) -> dict:
        self.bind({"sets": 2})
        self.draw({"sets": [0], "family": "own", "weights": "redraw", "poison": False, "flush": False})
        ready = self.arms.prepare("compile", [0]) if ask.get("compile", True) else {"ready": False, "reason": "not asked for"}
        checker = check.Checker(self.task, self.weights, self.judge, self.families)
        facts = checker.facts(ready, lambda leaves: self.task.results(
            self.task.call(self.arms._model("compile"), leaves, self.task.model)))
        times = {arm: self._quick_us(arm) for arm in ("eager", "compile") if arm == "eager" or ready["ready"]}
        wrong = check.sentences(facts, self.starts_constant)
        self.memory.write_params([t for _, t in self.task.state()])
        m, floor = self.memory, self.place["floor"]
        return {"sound": not wrong, "degenerate": wrong, "facts": facts,
                "errors": {} if ready["ready"] else {"compile": ready["reason"]},
                "sizes": {"in": room(m.inputs, m.in_alias), "param": room(m.params, m.param_alias), "out": room(m.outputs)},
                "floor": floor, "headroom": min(times.values()) / floor["us"] if floor["us"] else 0.0,
                "eager_us": times["eager"], "compile_us": times.get("compile", 0.0)}

    def _quick_us(self, arm: str) -> float:
        self.arms.run(arm, [0])
        return min(self.arms.run(arm, [0]) for _ in range(5))

    def trace(self, ask: dict) -> dict:
        from . import trace
        try:
            return {"graph": trace.trace(self.task)}
        except trace.RefusalError as e:
            raise Refusal("task", str(e)) from e

    # ---- sets ----

    def bind(self, ask: dict) -> dict:
        if self.place is None:
            self.place = self.memory.bind(int(ask["sets"]))
            self.memory.write_params([t for _, t in self.task.state()])
            self.place["floor"] = floor_of(self.task, self.memory, self.memory.inputs)
        self.fds = [s.fd for s in self.memory.slabs]
        return dict(self.place)

    def draw(self, ask: dict) -> dict:
        """New values and poison between two flushes, whose times tell whether somebody else computes."""
        sets, family = list(ask["sets"]), ask["family"]
        if family not in self.families:
            raise Refusal("protocol", f"no family {family!r} on this task")
        if self.place is None:
            raise Refusal("protocol", "draw before bind")
        self.arms.forget()
        if ask.get("weights", "keep") != "keep":
            self._redraw(touch=ask["weights"] == "touch")
            self.memory.write_params([t for _, t in self.task.state()])
        for s in sets:
            if not (ask.get("again") and s in self.drawn):
                self.drawn[s] = new_seed(), family
        flush = bool(ask.get("flush"))
        first = timed(self.device, self.device.flush) if flush and self.device.voids else 0.0
        for s in sets:
            self.memory.write_inputs(s, self.values.inputs(*self.drawn[s]))
            self.memory.lay_guards(s)
            if ask.get("poison"):
                self.memory.poison(s)
        self.memory.choose_blocks(sets)
        last = timed(self.device, self.device.flush) if flush else 0.0
        return {"write_us": first + last, "void": flush and self.memory.disturbed(max(first, last))}

    def run(self, ask: dict) -> dict:
        if self.place is None:
            raise Refusal("protocol", "run before bind")
        if ask.get("prepare"):
            return self.arms.prepare(ask["arm"], list(ask.get("sets", [0])))
        return {"span_us": self.arms.run(ask["arm"], ask["sets"])}

    def sample(self, ask: dict) -> dict:
        return {"blocks": self.memory.sample()}

    def settle(self, ask: dict) -> dict:
        stale, blocks, untouched = self.memory.settle()
        return {"stale_blocks": stale, "blocks": blocks, "untouched": untouched}

    def compare(self, ask: dict) -> dict:
        rows, worst, classes, intact, guarded = [], 0.0, [], True, True
        for s in ask["sets"]:
            if s not in self.drawn:
                raise Refusal("protocol", f"set {s} was never drawn")
            seed, family = self.drawn[s]
            leaves = self.values.inputs(seed, family)
            intact = intact and self.memory.intact(s, leaves)
            guarded = guarded and self.memory.guards_intact(s)
            answers = self.arms.answers(s)
            if answers is None:  # taken away from where the runner can write
                answers = [t.clone() for t in self.memory.output_views(s)]
            question = self.judge.question(leaves, family)
            found = question.findings(answers)
            rows += [f.row(family, s) for f in found]
            if ask.get("precision") and not any(f.misses for f in found):
                name, rel = question.precision(answers)
                classes.append(name)
                worst = max(worst, rel)
        order = [*CLASSES, "none"]
        return {"pass": intact and guarded and not any(r["misses"] for r in rows), "tol": max((r["tol"] for r in rows), default=0.0),
                "precision": max(classes, key=order.index) if classes else "none", "rel_l2": worst, "inputs_intact": intact, "guards_intact": guarded,
                "reference": self.references.kind, "outputs": rows, "notes": []}

    def device_sum(self, ask: dict) -> dict:
        return {"us": self.arms.device_sum(ask["arm"], ask["sets"])}

    # ---- health ----

    def probe(self, ask: dict) -> dict:
        times = sorted(timed(self.device, self.device.flush) for _ in range(5))
        return self.device.health() | {"sentinel_us": times[2], "sentinel_quiet_us": self.memory.flush_us}

    # ---- one question, one answer ----

    def answer(self, ask: dict) -> dict:
        self.fds = []
        try:
            if ask.get("v") != 1 or ask.get("op") not in OPERATIONS:
                raise Refusal("protocol", f"unknown message {ask.get('op')!r} of version {ask.get('v')!r}")
            if self.memory is None and ask["op"] not in ("hello", "load"):
                raise Refusal("protocol", f"{ask['op']} before load")
            return {"id": ask.get("id"), "ok": True} | getattr(self, ask["op"])(ask)
        except Refusal as e:
            code, text, hint = e.code, e.text, e.hint
        except BaseException as e:
            traceback.print_exc()
            code, text, hint = "machine", f"{ask.get('op')}: {type(e).__name__}: {first_line(e)}", ""
            if isinstance(e, RecursionError):
                code, text = "task", f"{ask.get('op')}: the task nests too deeply: {first_line(e)}"
            if out_of_memory(e):
                code, text, hint = "machine", f"not enough memory: {first_line(e)}", "smaller shapes, or a machine with more memory"
        self.fds = []
        return {"id": ask.get("id"), "ok": False, "error": {"code": code, "text": text, "hint": hint}}


def carried(name: str) -> str:
    return name if name.startswith("attr:") else f"attr:{name}"
