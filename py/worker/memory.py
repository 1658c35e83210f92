"""Memory shared with the runner: sealed memfds on the cpu target, VMM allocations on cuda.

Two slabs: parameters, and all input sets with their outputs. Offsets are multiples of 256.
"""
import ctypes
import fcntl
import mmap
import os
import time

import torch

from .protocol import Refusal
from .load import span_bytes

ALIGN = 256
BLOCK = 64 << 10
F_ADD_SEALS, SEALS = 1033, 0x1 | 0x2 | 0x4  # F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW
L2_FLUSH_MIN = 256 << 20


def round_up(n: int, to: int) -> int:
    return (n + to - 1) // to * to


class HostSlab:
    kind = "memfd"

    def __init__(self, size: int):
        self.size = round_up(max(size, 1), 4096)
        self.fd = os.memfd_create("slab", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, self.size)
        fcntl.fcntl(self.fd, F_ADD_SEALS, SEALS)
        self.map = mmap.mmap(self.fd, self.size)
        self.bytes = torch.frombuffer(self.map, dtype=torch.uint8)


class DeviceSlab:
    kind = "vmm"

    def __init__(self, size: int, lib, device: torch.device):
        self.size = round_up(max(size, 1), lib.vmm_granularity())
        address, handle, fd = ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_int(-1)
        self._check(lib, lib.vmm_alloc(self.size, 1, ctypes.byref(address), ctypes.byref(handle)))
        self._check(lib, lib.vmm_export(handle, ctypes.byref(fd)))
        self.fd = fd.value
        self.__cuda_array_interface__ = {"shape": (self.size,), "typestr": "|u1", "version": 3,
                                         "data": (address.value, False)}
        self.bytes = torch.as_tensor(self, device=device)

    def _check(self, lib, rc: int) -> None:
        if rc != 0:
            raise Refusal("machine", f"device memory of {self.size >> 20} MiB: {lib.vmm_error(rc).decode()}")


def device_library():
    lib = ctypes.CDLL(os.environ["CUDA_AGENT_DEVICE_LIB"])
    lib.vmm_granularity.restype = ctypes.c_size_t
    lib.vmm_error.restype = ctypes.c_char_p
    lib.vmm_alloc.argtypes = [ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
    lib.vmm_export.argtypes = [ctypes.c_uint64, ctypes.c_void_p]
    return lib


class Memory:
    """Where every value of the signature lies, for each set; views on it; flush and sample."""

    def __init__(self, device: torch.device, inputs: list, params: list, param_alias: list[int], outputs: list):
        self.device, self.cuda = device, device.type == "cuda"
        self.inputs, self.params, self.outputs = inputs, params, outputs
        self.param_alias = param_alias
        self.lib = device_library() if self.cuda else None
        if self.cuda:
            torch.zeros(1, device=device)
            rc = self.lib.vmm_open(device.index or 0)
            if rc:
                raise Refusal("machine", f"open the device: {self.lib.vmm_error(rc).decode()}")
        self.snapshot = self.quiet_flush = None
        self._flush_buffer = torch.empty(self._flush_bytes() // 8, dtype=torch.float64, device=device)

    def _flush_bytes(self) -> int:
        if self.cuda:
            return max(L2_FLUSH_MIN, 2 * torch.cuda.get_device_properties(self.device).L2_cache_size)
        return min(2 * last_level_cache(), 256 << 20)

    def _need(self, tensors) -> int:
        return sum(round_up(span_bytes(t), ALIGN) for t in tensors if isinstance(t, torch.Tensor))

    def budget(self) -> int:
        if self.cuda:
            free, _ = torch.cuda.mem_get_info(self.device)
            return int(free * 0.45)
        return int(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * 0.25)

    def bind(self, wanted: int) -> dict:
        set_bytes = round_up(self._need(self.inputs) + self._need(self.outputs), BLOCK)
        budget = self.budget()
        self.n_sets = max(1, min(wanted, budget // max(set_bytes, 1)))
        if set_bytes > budget * 2:
            raise Refusal("machine", f"one set of inputs and outputs takes {set_bytes >> 20} MiB, "
                                     f"{budget >> 20} MiB can be shared", "use a device with more memory, or smaller shapes")
        make = (lambda n: DeviceSlab(n, self.lib, self.device)) if self.cuda else HostSlab
        self.slabs = [make(self._need(self.params)), make(set_bytes * self.n_sets)]
        self._place(set_bytes)
        self._calibrate()
        return {"slabs": [{"bytes": s.size, "kind": s.kind} for s in self.slabs],
                "param": self.param_place, "sets": self.set_place}

    def _place(self, set_bytes: int) -> None:
        self.param_place, at = [], 0
        for t, alias in zip(self.params, self.param_alias):
            if alias >= 0:
                self.param_place.append(self.param_place[alias])
                continue
            self.param_place.append([0, at])
            at += round_up(span_bytes(t), ALIGN)
        self.set_place = []
        for s in range(self.n_sets):
            at, places = s * set_bytes, []
            for t in self.inputs + self.outputs:
                places.append([1, at] if isinstance(t, torch.Tensor) else None)
                at += round_up(span_bytes(t), ALIGN) if isinstance(t, torch.Tensor) else 0
            n = len(self.inputs)
            self.set_place.append({"in": places[:n], "out": places[n:]})

    def _view(self, place, like: torch.Tensor) -> torch.Tensor:
        slab, at = place
        if like.numel() == 0:
            return torch.empty_strided(like.shape, like.stride(), dtype=like.dtype, device=self.device)
        flat = self.slabs[slab].bytes[at:at + span_bytes(like)].view(like.dtype)
        return flat.as_strided(like.shape, like.stride())

    def input_views(self, s: int) -> list:
        return [self._view(p, t) if p else t for p, t in zip(self.set_place[s]["in"], self.inputs)]

    def output_views(self, s: int) -> list[torch.Tensor]:
        return [self._view(p, t) for p, t in zip(self.set_place[s]["out"], self.outputs)]

    def write_params(self, params: list[torch.Tensor]) -> None:
        for p, t, alias in zip(self.param_place, params, self.param_alias):
            if alias < 0:
                self._view(p, t).copy_(t)

    def poison(self, s: int) -> None:
        """Plausible wrong data: what an unwritten output would show."""
        for t in self.output_views(s):
            if t.dtype.is_floating_point:
                if self.cuda or t.numel() < 1 << 16:
                    t.normal_()
                else:
                    t.fill_(float(torch.randn(())))
            elif t.dtype == torch.bool:
                t.fill_(bool(torch.randint(2, ()) == 1))
            elif not t.dtype.is_complex:
                t.fill_(int(torch.randint(0, 100, ())))
            else:
                t.fill_(complex(float(torch.randn(())), 1.0))

    def sync(self) -> None:
        if self.cuda:
            torch.cuda.synchronize(self.device)

    def flush(self) -> float:
        """Write, then read, a buffer of at least twice the last-level cache; microseconds it took."""
        self.sync()
        start = time.perf_counter()
        if self.cuda:
            self._flush_buffer.fill_(1.0)
        for _ in range(2 if self.cuda else 1):
            self._flush_buffer.sum()
        self.sync()
        return (time.perf_counter() - start) * 1e6

    def _calibrate(self) -> None:
        times = sorted(self.flush() for _ in range(15 if self.cuda else 3))
        self.quiet_flush = times[len(times) // 2]

    # ---- the sample ----

    def choose_blocks(self, sets: list[int]) -> None:
        """Draw, before the window, which sixteenth of the outputs' blocks will be read at its end."""
        blocks = set()
        for s in sets:
            for p, t in zip(self.set_place[s]["out"], self.outputs):
                if t.numel():
                    blocks.update(range(p[1] // BLOCK, (p[1] + span_bytes(t) - 1) // BLOCK + 1))
        ordered = torch.tensor(sorted(blocks), dtype=torch.int64)
        n = max(min(64, len(ordered)), len(ordered) // 16)
        chosen = ordered[torch.randperm(len(ordered))[:n]]
        if len(ordered):
            chosen[-1] = ordered[-1]  # work is often written last where the buffer ends
        self.chosen = chosen.to(self.device)
        whole = self.slabs[1].bytes
        self.blocks = whole[: len(whole) // BLOCK * BLOCK].view(-1, BLOCK).view(torch.int64)
        self.last_sets = sets

    def sample(self) -> int:
        """One gather kernel; complete when this returns. No copy engine: it would not wait for the other context."""
        self.snapshot = self.blocks.index_select(0, self.chosen)
        self.sync()
        return len(self.chosen)

    def settle(self) -> tuple[int, int]:
        """Stale blocks: output bytes that changed after they were sampled."""
        if self.snapshot is None:
            return 0, 0
        now = self.blocks.index_select(0, self.chosen)
        stale = int((now != self.snapshot).any(1).sum())
        n, self.snapshot = len(self.chosen), None
        return stale, n


def last_level_cache() -> int:
    """Bytes of the largest cache that sysfs tells, 32 MiB where it tells nothing."""
    base, best = "/sys/devices/system/cpu/cpu0/cache", 0
    for i in range(8):
        try:
            with open(f"{base}/index{i}/size") as f:
                text = f.read().strip()
        except OSError:
            continue
        unit = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1], 1)
        best = max(best, int(text.rstrip("KMG")) * unit)
    return best or 32 << 20
