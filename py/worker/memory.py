"""What the runner sees: where every value of the signature lies for each set, views on it, the sample of outputs.

Two slabs: parameters, and all input sets with their outputs. Offsets are multiples of 256. What lies between the
values of a set and behind its last one is guard: random bytes that no honest candidate touches.
"""
import os
import secrets

import torch

from .device_cpu import timed
from .protocol import Refusal
from .signature import raw, span_bytes

ALIGN = 256
BLOCK = 64 << 10
LINE = 256  # bytes, the finest part of a block that can be seen to be untouched
GUARD = 4096  # bytes behind each output
POOL = {"cuda": 1 << 25, "cpu": 1 << 20}  # elements of prepared poison
POOL_STEP = 64  # elements: shifted poison stays aligned for wide copies
QUIET = 9  # flushes, for their quiet median
VOID_FACTOR, VOID_SLACK_US = 1.8, 30.0  # probed: a resident kernel costs every write at least 150 us, and mostly ms


def round_up(n: int, to: int) -> int:
    return (n + to - 1) // to * to


def room(tensors, alias=None, guard: int = 0) -> int:
    return sum(round_up(span_bytes(t), ALIGN) + guard for i, t in enumerate(tensors)
               if isinstance(t, torch.Tensor) and not (alias and alias[i] >= 0))


def same_bytes(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.numel() % 8 == 0 and a.data_ptr() % 8 == 0 and b.data_ptr() % 8 == 0:
        a, b = a.view(torch.int64), b.view(torch.int64)
    return torch.equal(a, b)


class Memory:
    def __init__(self, device, inputs: list, in_alias: list[int], params: list, param_alias: list[int], outputs: list):
        """inputs: leaves; outputs: eager's answer, whose values shape the poison."""
        self.device = device
        self.inputs, self.in_alias, self.params, self.param_alias = inputs, in_alias, params, param_alias
        self.outputs = [torch.empty(t.shape, dtype=t.dtype, device=t.device) for t in outputs]
        self.pools = [self._pool(t) for t in outputs]
        self.slabs, self.snapshot, self.before, self.out_lines, self.flush_us = [], None, None, None, 0.0

    # ---- places ----

    def bind(self, wanted: int) -> dict:
        set_bytes = self.set_bytes = round_up(room(self.inputs, self.in_alias) + room(self.outputs, guard=GUARD) + GUARD, BLOCK)
        budget = self.device.set_budget()
        self.n_sets = max(1, min(wanted, budget // max(set_bytes, 1)))
        if set_bytes > budget * 2:
            raise Refusal("machine", f"one set of inputs and outputs takes {set_bytes >> 20} MiB, {budget >> 20} MiB can be shared",
                          "smaller shapes, or a machine with more memory")
        self.slabs = [self.device.slab(room(self.params, self.param_alias)), self.device.slab(set_bytes * self.n_sets)]
        self.param_place, _ = self._places(0, 0, self.params, self.param_alias)
        self.set_place = []
        for s in range(self.n_sets):
            ins, at = self._places(1, s * set_bytes, self.inputs, self.in_alias)
            self.set_place.append({"in": ins, "out": self._places(1, at + GUARD, self.outputs, None, GUARD)[0]})
        self._make_guards()
        self.out_lines = self._map_outputs()
        for s in range(self.n_sets):  # nothing may ever run on what was never written: indices would point anywhere
            self.write_inputs(s, self.inputs)
            self.lay_guards(s)
        self._calibrate()
        return {"slabs": [{"bytes": s.size, "kind": s.kind} for s in self.slabs],
                "param": self.param_place, "sets": self.set_place}

    def close(self) -> None:
        """The descriptors; who has mapped them keeps the memory."""
        for slab in self.slabs:
            os.close(slab.fd)
        self.slabs = []

    @staticmethod
    def _places(slab: int, at: int, tensors, alias, guard: int = 0) -> tuple[list, int]:
        places = []
        for i, t in enumerate(tensors):
            if not isinstance(t, torch.Tensor):
                places.append(None)
            elif alias and alias[i] >= 0:
                places.append(places[alias[i]])
            else:
                places.append([slab, at])
                at += round_up(span_bytes(t), ALIGN) + guard
        return places, at

    def _view(self, place, example: torch.Tensor) -> torch.Tensor:
        slab, at = place
        if example.numel() == 0:
            return torch.empty_strided(example.shape, example.stride(), dtype=example.dtype, device=example.device)
        whole = self.slabs[slab].bytes[at:at + span_bytes(example)].view(example.dtype)
        return whole.as_strided(example.shape, example.stride())

    def input_views(self, s: int) -> list:
        return [self._view(p, t) if p else t for p, t in zip(self.set_place[s]["in"], self.inputs)]

    def output_views(self, s: int) -> list[torch.Tensor]:
        return [self._view(p, t) for p, t in zip(self.set_place[s]["out"], self.outputs)]

    # ---- guards ----

    def _spans(self, s: int) -> list[tuple[int, int]]:
        """First byte and the one behind the last of every value of a set, as they lie."""
        found = {(p[1], p[1] + span_bytes(t)) for places, tensors in ((self.set_place[s]["in"], self.inputs),
                                                                     (self.set_place[s]["out"], self.outputs))
                 for p, t in zip(places, tensors) if p and t.numel()}
        return sorted(found)

    def _make_guards(self) -> None:
        """The same bytes behind every set's values; where the gaps are wider than GUARD, their first GUARD bytes."""
        at, gaps = 0, []
        for lo, hi in [*self._spans(0), (self.set_bytes, self.set_bytes)]:
            gaps.append(torch.arange(at, min(lo, at + GUARD)))
            at = hi
        self.gap = torch.cat(gaps).to(self.device.torch_device)
        self.guard = torch.randint(256, self.gap.shape, dtype=torch.uint8, device=self.device.torch_device)

    def lay_guards(self, s: int) -> None:
        """Anew for every draw: what one candidate broke is not the next one's fault."""
        self.slabs[1].bytes[self.gap + s * self.set_bytes] = self.guard

    def guards_intact(self, s: int) -> bool:
        """Was nothing written beside the values of this set?"""
        return torch.equal(self.slabs[1].bytes[self.gap + s * self.set_bytes], self.guard)

    def _map_outputs(self) -> torch.Tensor:
        """[blocks of a set, lines of a block]: does the line hold an output?"""
        lines = torch.zeros(self.set_bytes // LINE, dtype=torch.bool, device=self.device.torch_device)
        for p, t in zip(self.set_place[0]["out"], self.outputs):
            lines[p[1] // LINE:round_up(p[1] + span_bytes(t), LINE) // LINE] = True
        return lines.view(-1, BLOCK // LINE)

    # ---- writing ----

    def _copy(self, to: torch.Tensor, source: torch.Tensor) -> None:
        if to.numel():
            self.device.copy(raw(to), raw(source))

    def write_params(self, params: list[torch.Tensor]) -> None:
        for p, t, alias in zip(self.param_place, params, self.param_alias):
            if alias < 0:
                self._copy(self._view(p, t), t)

    def write_inputs(self, s: int, leaves: list) -> None:
        for view, leaf, alias in zip(self.input_views(s), leaves, self.in_alias):
            if isinstance(leaf, torch.Tensor) and alias < 0:
                self._copy(view, leaf)

    def intact(self, s: int, leaves: list) -> bool:
        return all(same_bytes(raw(v), raw(t)) for v, t in zip(self.input_views(s), leaves)
                   if isinstance(t, torch.Tensor) and t.numel())

    @staticmethod
    def _pool(example: torch.Tensor) -> torch.Tensor:
        """Values like the output's own, in another order: an output that was not written looks right at a glance."""
        if not example.numel():
            return example
        values = example.detach().reshape(-1)[:POOL[example.device.type]].clone()
        return values[torch.randperm(values.numel(), device=values.device)]

    def poison(self, s: int) -> None:
        for view, pool in zip(self.output_views(s), self.pools):
            to, n = view.view(-1), pool.numel()
            at = -POOL_STEP * secrets.randbelow(max(1, n // POOL_STEP))
            while n and at < to.numel():
                lo, hi = max(at, 0), min(at + n, to.numel())
                if hi > lo:
                    self._copy(to[lo:hi], pool[lo - at:hi - at])
                at += n

    # ---- is somebody else computing? ----

    def _calibrate(self) -> None:
        """The quiet time of a flush, before any runner exists."""
        timed(self.device, self.device.flush)
        self.flush_us = sorted(timed(self.device, self.device.flush) for _ in range(QUIET))[QUIET // 2]

    def disturbed(self, us: float) -> bool:
        """Did a flush take so much longer than a quiet one that somebody computes meanwhile?

        Long kernels and few launches: what the host does in between does not count, as it would in many small writes.
        """
        return self.device.voids and us > VOID_FACTOR * self.flush_us + VOID_SLACK_US

    # ---- the sample ----

    def choose_blocks(self, sets: list[int]) -> None:
        """Draw, before the window, which sixteenth of the outputs' blocks will be read at its end.

        Of each set one block at least, and its last one: work is often written last where the buffer ends.
        """
        device = self.device.torch_device
        secret = torch.Generator(device=device)  # not the one that a task's get_inputs() may seed
        secret.manual_seed(secrets.randbits(62))
        whole = self.slabs[1].bytes
        self.blocks = whole[: len(whole) // BLOCK * BLOCK].view(-1, BLOCK).view(torch.int64)
        first = torch.tensor(sets, dtype=torch.int64, device=device).unsqueeze(1) * (self.set_bytes // BLOCK)
        of_set = self.out_lines.any(1).nonzero().squeeze(1)
        every = (first + of_set).view(-1)
        if every.numel():
            some = torch.randperm(every.numel(), generator=secret, device=device)[:max(64, every.numel() // 16)]
            one = torch.randint(of_set.numel(), first.shape, generator=secret, device=device)
            every = torch.unique(torch.cat([every[some], (first + of_set[one]).view(-1), (first + of_set[-1]).view(-1)]))
        self.chosen = every
        self.before, self.snapshot = self.blocks.index_select(0, self.chosen), None

    def sample(self) -> int:
        """One gather kernel; complete when this returns. No copy engine: it would not wait for the other context."""
        self.snapshot = self.blocks.index_select(0, self.chosen)
        self.device.sync()
        return len(self.chosen)

    def settle(self) -> tuple[int, int, list[int]]:
        """Stale blocks (output bytes that changed after they were sampled), blocks, sets with a line that nobody wrote."""
        if self.snapshot is None:
            return 0, 0, []
        now = self.blocks.index_select(0, self.chosen)
        stale = int((now != self.snapshot).any(1).sum())
        same = (now == self.before).view(-1, BLOCK // LINE, LINE // 8).all(2)
        same &= self.out_lines[self.chosen % (self.set_bytes // BLOCK)]
        untouched = self.chosen[same.any(1)] * BLOCK // self.set_bytes
        n, self.snapshot, self.before = len(self.chosen), None, None
        return stale, n, sorted(set(untouched.tolist()))
