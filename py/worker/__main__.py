"""The server: one question, one answer, until bye."""
import hashlib
import os
import platform
import subprocess
import sys
import tempfile
import time

CHANNEL_FD = 3


def guard_channel() -> int:
    """Move the channel out of the task's way and send everything printed to stderr."""
    fd = os.dup(CHANNEL_FD)
    os.set_inheritable(fd, False)
    os.close(CHANNEL_FD)
    os.dup2(2, 1)
    os.umask(0)  # the cache folder is private to the product; its next worker has another uid
    return fd


def query_nvidia(fields: str, device: int) -> list[str]:
    """One row of nvidia-smi, empty texts where it is not there."""
    try:
        out = subprocess.run(["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits", f"--id={device}"],
                             capture_output=True, text=True, timeout=20, check=True).stdout
        return [f.strip() for f in out.strip().split(",")]
    except (OSError, subprocess.SubprocessError):
        return [""] * len(fields.split(","))


class Server:
    def __init__(self, channel):
        self.channel = channel
        self.task = self.memory = self.arms = self.judge = self.values = None
        self.set_state, self.answers_from, self.fds = {}, "shared", []

    # ---- hello, load ----

    def hello(self, ask: dict) -> dict:
        import torch
        self.torch = torch
        self.threads = int(ask.get("threads", 1))
        torch.set_num_threads(self.threads)
        if ask["target"] == "cuda" and not torch.cuda.is_available():
            from .protocol import Refusal
            raise Refusal("missing", "torch sees no CUDA device", "nvidia-smi tells whether the driver is there; --target cpu needs none")
        index = int(ask.get("device", 0))
        self.device = torch.device("cuda", index) if ask["target"] == "cuda" else torch.device("cpu")
        facts = self._cuda_facts(index) if ask["target"] == "cuda" else self._cpu_facts()
        versions = f"torch {torch.__version__}; {facts['driver']}; threads {self.threads}; worker 1"
        return {"torch": torch.__version__, "python": platform.python_version(), "cuda": torch.version.cuda or "",
                "device": facts, "threads": self.threads, "versions": versions}

    def _cuda_facts(self, index: int) -> dict:
        p = self.torch.cuda.get_device_properties(index)
        uuid, driver, sm, mem, why = query_nvidia("uuid,driver_version,clocks.sm,clocks.mem,clocks_event_reasons.active", index)
        return {"name": p.name, "uuid": uuid or str(p.uuid), "driver": driver, "sm_count": p.multi_processor_count,
                "arch": f"{p.major}{p.minor}" + ("a" if p.major in (9, 10) else ""), "l2_bytes": p.L2_cache_size,
                "total_bytes": p.total_memory, "clocks": f"sm {sm} MHz, memory {mem} MHz", "throttle": why}

    def _cpu_facts(self) -> dict:
        model = ""
        with open("/proc/cpuinfo") as f:
            model = next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")), platform.machine())
        cores = len(os.sched_getaffinity(0))
        return {"name": model, "uuid": hashlib.sha256(f"{model} {cores}".encode()).hexdigest()[:16], "driver": platform.release(),
                "sm_count": 0, "arch": platform.machine(), "l2_bytes": 0,
                "total_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), "clocks": f"{cores} cores", "throttle": ""}

    def load(self, ask: dict) -> dict:
        from . import check, load
        from .judge import Judge
        from .values import Values
        self.folder = tempfile.mkdtemp(prefix="task-")
        self.task = task = load.Task(ask["name"], ask["source"], self.device, self.folder)
        leaves = task.leaves(task.example)
        flat = [v for _, v in leaves]
        result = task.run_eager(task.example)
        for name, value in leaves + load.state_of(task.model) + [("output", t) for t in result]:
            load.describe(name, value)  # refuses what is not native, before anything computes with it
        start = time.perf_counter()
        result = task.run_eager(task.example)
        self._sync()
        eager_us = (time.perf_counter() - start) * 1e6
        self._refuse_impure(check, flat)
        names = [n for n, _ in task.outputs(task.forward(task.model, task.example))] if len(result) else []
        self.values = Values(task)
        self.judge = Judge(task, self.values, ask.get("preset", "cuda-agent"), names)
        state = load.state_of(task.model)
        alias = load.aliases(state)
        outs = [self.torch.empty(t.shape, dtype=t.dtype, device=self.device) for t in result]
        from .memory import Memory
        self.memory = Memory(self.device, flat, [t for _, t in state], alias, outs)
        self.families, notes = self._usable_families()
        sig = {"in": [load.describe(n, v) for n, v in leaves],
               "param": [load.describe(n, t, a) for (n, t), a in zip(state, alias)],
               "out": [load.describe(n, t) for n, t in zip(names, outs)]}
        sizes = {k: sum(v["bytes"] for v in sig[k]) for k in sig}
        return {"signature": sig, "bytes": sizes, "families": self.families, "eager_us": eager_us, "notes": notes}

    def _sync(self) -> None:
        if self.device.type == "cuda":
            self.torch.cuda.synchronize()

    def _refuse_impure(self, check, flat: list) -> None:
        from .protocol import Refusal
        if not check.deterministic(self.task, flat):
            raise Refusal("task", "two calls on the same inputs differ: forward draws random numbers or keeps state of its own between calls; neither is native")
        changed = check.hidden_state(self.task, flat)
        if changed:
            raise Refusal("task", f"forward changes its own state ('{changed[0]}'), which is not native")
        if check.mutated_inputs(self.task, flat):
            raise Refusal("task", "forward changes its inputs in place, which is not native")

    def _usable_families(self) -> tuple[list[str], list[str]]:
        """Those on which float64 and eager are finite; with unit-gain weights if they allow it."""
        from .values import FAMILIES, new_seed
        notes = []
        self._redraw()
        if not self._finite("own"):
            self.values.redrawn = False
            for n, t in self._state():
                t.copy_(self.values.original[n])
            self._redraw()
            notes.append("weights stay near those of the constructor: with fresh ones the outputs are not finite")
        indices = any(not t.dtype.is_floating_point for t in self.memory.outputs)
        found = ["own"]
        for family in FAMILIES[1:] if self.values.has_float else ():
            if family == "ties" and indices:
                continue
            if self._finite(family):
                found.append(family)
        if self.judge.reference_kind != "float64":
            notes.append("the reference is float32 without TF32: the model does not run in float64")
        return found, notes

    def _state(self):
        from .load import state_of
        return state_of(self.task.model)

    def _finite(self, family: str) -> bool:
        from .values import new_seed
        leaves = self.values.inputs(new_seed(), family)
        both = self.judge.reference(leaves) + self.judge.eager(leaves)
        return all(bool(self.torch.isfinite(t).all()) for t in both if t.dtype.is_floating_point)

    def _redraw(self, touch: bool = False) -> None:
        from .values import new_seed
        self.values.touch(new_seed()) if touch else self.values.redraw(new_seed())
        self.judge.weights_changed()
        if self.arms:
            self.arms.weights_changed()

    # ---- check, trace ----

    def check(self, ask: dict) -> dict:
        from . import check
        self.bind({"sets": 2})
        self.draw({"sets": [0], "family": "own", "weights": "redraw", "poison": False, "flush": False})
        ready = self.arms.prepare("compile", [0])
        checker = check.Checker(self.task, self.values, self.judge, self.families)
        facts = checker.facts(ready)
        sizes = {"in": self.memory._need(self.memory.inputs), "param": self.memory._need(self.memory.params),
                 "out": self.memory._need(self.memory.outputs)}
        floor = self.place["floor"]
        times = {arm: self._quick_us(arm) for arm in ("eager", "compile") if arm == "eager" or ready["ready"]}
        text = check.sentences(facts)
        self._redraw()
        self.memory.write_params([t for _, t in self._state()])
        return {"sound": not text, "degenerate": text, "facts": facts, "errors": {} if ready["ready"] else {"compile": ready["reason"]},
                "sizes": sizes, "floor": floor,
                "headroom": min(times.values()) / floor["us"] if floor["us"] else 0.0,
                "eager_us": times["eager"], "compile_us": times.get("compile", 0.0)}

    def _quick_us(self, arm: str) -> float:
        self.arms.run(arm, [0])
        return min(self.arms.run(arm, [0]) for _ in range(5))

    def trace(self, ask: dict) -> dict:
        from . import trace
        from .protocol import Refusal
        try:
            return {"graph": trace.trace(self.task)}
        except trace.RefusalError as e:
            raise Refusal("task", str(e)) from e

    # ---- sets ----

    def bind(self, ask: dict) -> dict:
        from .arms import Arms
        if not hasattr(self.memory, "slabs"):
            self.place = self.memory.bind(int(ask["sets"]))
            self.arms = Arms(self.task, self.memory)
            self.memory.write_params([t for _, t in self._state()])
            self.place["floor"] = self._floor()
        self.fds = [s.fd for s in self.memory.slabs]
        return dict(self.place)

    def _floor(self) -> dict:
        """A model: bytes that must move over bandwidth, flops over the matrix units' rate."""
        from . import check
        sizes = [self.memory._need(t) for t in (self.memory.inputs, self.memory.params, self.memory.outputs)]
        flops, speed = check.count_flops(self.task), check.bandwidth(self.memory)
        by_flops = flops / check.peak_flops(self.memory, self.judge.low) if flops else 0.0
        return {"bytes": sum(sizes), "flops": float(flops), "us": max(sum(sizes) / speed, by_flops) * 1e6, "bandwidth": speed}

    def draw(self, ask: dict) -> dict:
        from .values import new_seed
        if ask.get("weights", "keep") != "keep":
            self._redraw(touch=ask["weights"] == "touch")
            self.memory.write_params([t for _, t in self._state()])
        for s in ask["sets"]:
            state = self.set_state[s] if ask.get("again") else (new_seed(), ask["family"])
            self.set_state[s] = state
            for view, leaf in zip(self.memory.input_views(s), self.values.inputs(*state)):
                if isinstance(leaf, self.torch.Tensor):
                    view.copy_(leaf)
            if ask.get("poison"):
                self.memory.poison(s)
        self.memory.choose_blocks(list(ask["sets"]))
        self.answers_from = "shared"
        us = self.memory.flush() if ask.get("flush") else 0.0
        void = bool(self.memory.cuda and us > 1.8 * self.memory.quiet_flush)
        return {"write_us": us, "void": void}

    def run(self, ask: dict) -> dict:
        if ask.get("prepare"):
            return self.arms.prepare(ask["arm"], list(ask.get("sets", [0])))
        self.answers_from = "arm"
        return {"span_us": self.arms.run(ask["arm"], ask["sets"])}

    def sample(self, ask: dict) -> dict:
        return {"blocks": self.memory.sample()}

    def settle(self, ask: dict) -> dict:
        stale, blocks = self.memory.settle()
        return {"stale_blocks": stale, "blocks": blocks}

    def compare(self, ask: dict) -> dict:
        rows, worst, classes, intact = [], 0.0, [], True
        from .judge import CLASSES
        for s in ask["sets"]:
            seed, family = self.set_state[s]
            leaves = self.values.inputs(seed, family)
            intact = intact and self._intact(s, leaves)
            if self.answers_from == "arm":
                answers = [t for _, t in self.task.outputs(self.arms.results[s])]
            else:
                answers = [t.clone() for t in self.memory.output_views(s)]
            found = self.judge.judge(answers, leaves, family)
            rows += [f.row(family, s) for f in found]
            if ask.get("precision") and not any(f.misses for f in found):
                name, rel = self.judge.precision(answers, leaves)
                classes.append(name)
                worst = max(worst, rel)
        order = list(CLASSES) + ["none"]
        return {"pass": intact and not any(r["misses"] for r in rows), "tol": max((r["tol"] for r in rows), default=0.0),
                "precision": max(classes, key=order.index) if classes else "none", "rel_l2": worst, "inputs_intact": intact,
                "reference": self.judge.reference_kind, "outputs": rows, "notes": []}

    def _intact(self, s: int, leaves: list) -> bool:
        views = self.memory.input_views(s)
        return all(self.torch.equal(v.contiguous().view(self.torch.uint8) if v.dim() else v, t.contiguous().view(self.torch.uint8) if t.dim() else t)
                   for v, t in zip(views, leaves) if isinstance(t, self.torch.Tensor) and t.numel())

    # ---- health ----

    def probe(self, ask: dict) -> dict:
        times = sorted(self.memory.flush() for _ in range(5))
        facts = {"clocks": "", "throttle": "", "temperature": "", "foreign_processes": 0}
        if self.device.type == "cuda":
            sm, mem, why, hot = query_nvidia("clocks.sm,clocks.mem,clocks_event_reasons.active,temperature.gpu", self.device.index)
            facts = {"clocks": f"sm {sm} MHz, memory {mem} MHz", "throttle": why, "temperature": hot, "foreign_processes": 0}
        return facts | {"sentinel_us": times[2], "sentinel_quiet_us": self.memory.quiet_flush, "healthy": True}


OPERATIONS = ("hello", "load", "check", "trace", "bind", "draw", "run", "sample", "settle", "compare", "probe")


def answer_one(server: Server, ask: dict) -> dict:
    from .protocol import Refusal
    import torch
    try:
        if ask.get("v") != 1 or ask.get("op") not in OPERATIONS:
            raise Refusal("protocol", f"unknown message {ask.get('op')!r} of version {ask.get('v')!r}")
        return {"id": ask.get("id"), "ok": True} | getattr(server, ask["op"])(ask)
    except Refusal as e:
        code, text, hint = e.code, e.text, e.hint
    except torch.OutOfMemoryError as e:
        code, text, hint = "machine", f"not enough device memory: {str(e).splitlines()[0]}", "smaller shapes, or a device with more memory"
    except MemoryError:
        code, text, hint = "machine", "not enough memory", "smaller shapes, or a machine with more memory"
    except Exception as e:
        import traceback
        traceback.print_exc()
        code, text, hint = "machine", f"{ask.get('op')}: {type(e).__name__}: {(str(e).splitlines() or [''])[0][:300]}", ""
    server.fds = []
    return {"id": ask.get("id"), "ok": False, "error": {"code": code, "text": text, "hint": hint}}


def main() -> int:
    from .protocol import Channel
    server = Server(Channel(guard_channel()))
    while True:
        ask = server.channel.receive()
        if ask is None:
            return 0
        if ask.get("op") == "bye":
            server.channel.send({"id": ask.get("id"), "ok": True})
            return 0
        server.fds = []
        answer = answer_one(server, ask)
        server.channel.send(answer, server.fds)


if __name__ == "__main__":
    sys.exit(main())
