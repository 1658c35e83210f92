"""PyTorch's own ways to run the task: what a candidate is timed against.

eager and compile use PyTorch's defaults and pay the published reward; the others are for best-of-PyTorch. Results stay
where PyTorch left them: a copy into shared memory would be time that is not theirs.
"""
import contextlib
import time

import torch

from .load import Task, first_line
from .memory import Memory
from .protocol import Refusal
from .reference import tf32

MODES = {"max_autotune": "max-autotune-no-cudagraphs"}
RECOMPILES = "recompile_limit"
NO_CALLS = ("noop", "spin")


class Arms:
    def __init__(self, task: Task, memory: Memory):
        self.task, self.memory, self.cuda = task, memory, task.device.type == "cuda"
        self.compiled, self.graphs, self.called = {}, {}, {}

    def available(self, arm: str) -> str:
        """Why the arm cannot run here, or an empty text."""
        if not self.cuda and (arm == "compile_tf32" or arm.startswith("graph") or arm == "spin"):
            return "only on cuda"
        return ""

    def _context(self, arm: str):
        return tf32(True) if arm.endswith("tf32") else contextlib.nullcontext()

    def _model(self, arm: str):
        base = arm.removeprefix("graph_")
        if base == "eager":
            return self.task.model
        if base not in self.compiled:
            import torch._dynamo.config as dynamo  # seconds, and only compiled arms need it
            setattr(dynamo, RECOMPILES if hasattr(dynamo, RECOMPILES) else "cache_size_limit", 64)  # one code object serves all
            self.compiled[base] = torch.compile(self.task.model, mode=MODES.get(base))
        return self.compiled[base]

    def _bound(self, arm: str, s: int):
        """forward on the shared inputs of a set, ready to call."""
        model, leaves, task = self._model(arm), self.memory.input_views(s), self.task
        if task.carried:
            return lambda: task.call(model, leaves, task.model)
        nest = task.nest(leaves)
        return lambda: (task.forward(model, nest), [])

    def prepare(self, arm: str, sets: list[int]) -> dict:
        start = time.perf_counter()
        reason = self.available(arm)
        if not reason and arm not in NO_CALLS:
            try:
                self._warm(arm, sets)
            except Exception as e:
                reason = f"{type(e).__name__}: {e.text if isinstance(e, Refusal) else first_line(e)}"[:220]
        return {"ready": not reason, "reason": reason, "prepare_ms": int((time.perf_counter() - start) * 1e3)}

    def _warm(self, arm: str, sets: list[int]) -> None:
        """Three calls, then as many as a window may hold at once: later windows find the memory allocated."""
        self.called = {}
        with torch.no_grad(), self._context(arm):
            for s in (sets * 3)[:3]:
                self._bound(arm, s)()
            self.memory.device.sync()
            if arm.startswith("graph_"):
                self.graphs.pop(arm, None)
                self.graphs[arm] = self._captured(arm, sets)
            elif self.cuda:
                held = [self._bound(arm, s)() for s in sets]
                self.memory.device.sync()
                del held

    def _captured(self, arm: str, sets: list[int]) -> dict:
        """One graph a set, all in one pool, so that many take the memory of one.

        They clobber each other's results: only the first keeps its own for `compare`. Parameters are changed in place,
        so graphs stay right.
        """
        graphs, pool = {}, torch.cuda.graph_pool_handle()
        for s in sets:
            call, stream = self._bound(arm, s), torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                call()
            torch.cuda.current_stream().wait_stream(stream)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=pool):
                out = call()
            graphs[s] = graph, None if graphs else out
            del out
        return graphs

    def run(self, arm: str, sets: list[int]) -> float:
        """One call a set, device idle at the end; span in microseconds."""
        self.called = {}
        if arm == "noop":
            return 0.0
        if arm == "spin":
            return self.memory.device.spin()
        if arm.startswith("graph_"):
            missing = [s for s in sets if s not in self.graphs.get(arm, {})]
            if missing:
                raise Refusal("protocol", f"arm {arm} was not prepared for sets {missing}")
            return self._replay(arm, sets)
        bound = [(s, self._bound(arm, s)) for s in sets]
        called = {}
        with torch.no_grad(), self._context(arm):
            start = time.perf_counter()
            for s, call in bound:
                called[s] = call()
            self.memory.device.sync()
            span = time.perf_counter() - start
        self.called = called
        return span * 1e6

    def _replay(self, arm: str, sets: list[int]) -> float:
        graphs = self.graphs[arm]
        start = time.perf_counter()
        for s in sets:
            graphs[s][0].replay()
        self.memory.device.sync()
        span = time.perf_counter() - start
        self.called = {s: graphs[s][1] for s in sets}
        return span * 1e6

    def answers(self, s: int) -> list[torch.Tensor] | None:
        """What the last run gave for a set; None: it has not run since the last draw."""
        if s not in self.called:
            return None
        if self.called[s] is None:
            raise Refusal("protocol", f"the graph of set {s} does not keep its results: run the first prepared set")
        return self.task.results(self.called[s])

    def forget(self) -> None:
        self.called = {}

    def device_sum(self, arm: str, sets: list[int]) -> float:
        """The published workdir's clock: kernel times summed by torch.profiler, per call, microseconds."""
        from torch.profiler import ProfilerActivity, profile
        if not self.cuda:
            raise Refusal("protocol", "sums of kernel times are of cuda")
        self.run(arm, sets)
        with profile(activities=[ProfilerActivity.CUDA]) as p:
            self.run(arm, sets)
        return sum(e.self_device_time_total for e in p.key_averages()) / len(sets)
