"""The host as a target: sealed memfds to share, a stream through the caches, the processor's facts."""
import fcntl
import hashlib
import mmap
import os
import platform
import time

import torch

F_ADD_SEALS, SEALS = 1033, 0x1 | 0x2 | 0x4  # F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW
FLUSH_MAX = 256 << 20  # a virtual machine may name the whole socket's cache as its own


class Slab:
    """Shared memory. Sealed: cut short by the other side it would end this process by SIGBUS."""

    kind = "memfd"

    def __init__(self, size: int):
        self.size = (max(size, 1) + 4095) // 4096 * 4096
        self.fd = os.memfd_create("slab", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, self.size)
        fcntl.fcntl(self.fd, F_ADD_SEALS, SEALS)
        self.bytes = torch.frombuffer(mmap.mmap(self.fd, self.size), dtype=torch.uint8)


class CpuDevice:
    name = "cpu"
    voids = False  # a stopped process leaves nothing running here

    def __init__(self, ordinal: int, threads: int):
        self.torch_device = torch.device("cpu")
        torch.set_num_threads(threads)
        self._stream = None

    def slab(self, size: int) -> Slab:
        return Slab(size)

    def free_bytes(self) -> int:
        """What the machine and the control group leave."""
        with open("/proc/meminfo") as f:
            free = next(int(line.split()[1]) << 10 for line in f if line.startswith("MemAvailable"))
        for limit, used in (("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
                            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes")):
            try:
                with open(limit) as f, open(used) as g:
                    free = min(free, int(f.read()) - int(g.read()))
            except (OSError, ValueError):
                continue
        return max(free, 0)

    def set_budget(self) -> int:
        """Bytes that input sets may take; the rest is for references."""
        return self.free_bytes() // 4

    def copy(self, to: torch.Tensor, source: torch.Tensor) -> None:
        to.copy_(source)

    def sync(self) -> None:
        pass

    def flush(self) -> None:
        if self._stream is None:
            self._stream = torch.ones(min(2 * last_level_cache(), FLUSH_MAX) // 8, dtype=torch.float64)
        self._stream.sum()

    def facts(self) -> dict:
        with open("/proc/cpuinfo") as f:
            model = next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")), platform.machine())
        cores = len(os.sched_getaffinity(0))
        return {"name": model, "uuid": hashlib.sha256(f"{model} {cores}".encode()).hexdigest()[:16],
                "driver": platform.release(), "sm_count": 0, "arch": platform.machine(), "l2_bytes": last_level_cache(),
                "total_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), "clocks": f"{cores} cores", "throttle": ""}

    def health(self) -> dict:
        return {"clocks": "", "throttle": "", "temperature": ""}

    def spin(self) -> float:
        raise NotImplementedError("only on cuda")


def timed(device, work) -> float:
    """Microseconds from an idle device to an idle device."""
    device.sync()
    start = time.perf_counter()
    work()
    device.sync()
    return (time.perf_counter() - start) * 1e6


def last_level_cache() -> int:
    """Bytes of the largest cache that sysfs tells, 32 MiB where it tells nothing."""
    base, best = "/sys/devices/system/cpu/cpu0/cache", 0
    for i in range(8):
        try:
            with open(f"{base}/index{i}/size") as f:
                text = f.read().strip()
        except OSError:
            continue
        unit = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:], 1)
        best = max(best, int(text.rstrip("KMG") or 0) * unit)
    return best or 32 << 20
