"""PyTorch's own ways to run the task: what a candidate is timed against.

eager and compile use PyTorch's defaults and pay the published reward; the others are for best-of-PyTorch.
"""
import contextlib
import time

import torch

from .judge import tf32
from .load import Task

SPIN_CYCLES = 3_000_000  # about 2 ms on a device near 1.7 GHz


class Arms:
    def __init__(self, task: Task, memory):
        self.task, self.memory, self.cuda = task, memory, task.device.type == "cuda"
        self.compiled, self.graphs, self.results = {}, {}, {}

    def available(self, arm: str) -> str:
        """Why the arm cannot run here, or an empty text."""
        if not self.cuda and (arm == "compile_tf32" or arm.startswith("graph") or arm == "spin"):
            return "only on cuda"
        return ""

    def weights_changed(self) -> None:
        self.graphs = {}  # parameters are changed in place, but constants may have been folded

    def _context(self, arm: str):
        return tf32(True) if arm.endswith("tf32") else contextlib.nullcontext()

    def _callable(self, arm: str):
        base = arm.removeprefix("graph_")
        if base == "eager":
            return lambda nest: self.task.forward(self.task.model, nest)
        if base not in self.compiled:
            mode = "max-autotune" if base == "max_autotune" else None
            torch._dynamo.reset()
            self.compiled[base] = torch.compile(self.task.model, mode=mode)
        model = self.compiled[base]
        return lambda nest: self.task.forward(model, nest)

    def prepare(self, arm: str, sets: list[int]) -> dict:
        start = time.perf_counter()
        reason = self.available(arm)
        if not reason:
            try:
                self._warm(arm, sets)
            except Exception as e:
                reason = f"{type(e).__name__}: {(str(e).splitlines() or [''])[0][:200]}"
        return {"ready": not reason, "reason": reason, "prepare_ms": int((time.perf_counter() - start) * 1e3)}

    def _warm(self, arm: str, sets: list[int]) -> None:
        if arm in ("noop", "spin"):
            return
        call = self._callable(arm)
        with torch.no_grad(), self._context(arm):
            for s in (sets * 3)[:3]:
                call(self.task.nest(self.memory.input_views(s)))
            self.memory.sync()
            if arm.startswith("graph_"):
                self.graphs[arm] = {s: self._capture(call, s) for s in sets}

    def _capture(self, call, s: int):
        nest = self.task.nest(self.memory.input_views(s))
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            call(nest)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = call(nest)
        return graph, out

    def run(self, arm: str, sets: list[int]) -> float:
        """One call a set, results kept where the arm left them, device idle at the end; span in microseconds."""
        self.results = {}
        if arm == "noop":
            return 0.0
        if arm == "spin":
            return self._spin()
        results = {}
        start = time.perf_counter()
        if arm.startswith("graph_"):
            missing = [s for s in sets if s not in self.graphs.get(arm, {})]
            if missing:
                raise RuntimeError(f"arm {arm} was not prepared for sets {missing}")
            for s in sets:
                graph, out = self.graphs[arm][s]
                graph.replay()
                results[s] = out
        else:
            call = self._callable(arm)
            nests = {s: self.task.nest(self.memory.input_views(s)) for s in set(sets)}
            with torch.no_grad(), self._context(arm):
                for s in sets:
                    results[s] = call(nests[s])
        self.memory.sync()
        span = (time.perf_counter() - start) * 1e6
        self.results = results
        return span

    def _spin(self) -> float:
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        torch.cuda._sleep(SPIN_CYCLES)
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) * 1e3
