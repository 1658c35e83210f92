"""An NVIDIA device as a target: VMM allocations to share, copies by kernels, NVML's facts."""
import ctypes
import os

import torch

from .nvml import Nvml
from .protocol import Refusal

FLUSH_MIN = 256 << 20
SPIN_CYCLES = 3_000_000  # about 2 ms on a device near 1.7 GHz


def device_library():
    path = os.environ.get("CUDA_AGENT_DEVICE_LIB", "")
    if not path:
        raise Refusal("missing", "CUDA_AGENT_DEVICE_LIB names no libca_device.so")
    lib = ctypes.CDLL(path)
    lib.vmm_granularity.restype = ctypes.c_size_t
    lib.vmm_error.restype = ctypes.c_char_p
    lib.vmm_alloc.argtypes = [ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
    lib.vmm_export.argtypes = [ctypes.c_uint64, ctypes.c_void_p]
    return lib


class Slab:
    """Device memory that crosses as a descriptor."""

    kind = "vmm"

    def __init__(self, size: int, lib, device: torch.device):
        unit = lib.vmm_granularity()
        self.size = (max(size, 1) + unit - 1) // unit * unit
        address, handle, fd = ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_int(-1)
        self._check(lib, lib.vmm_alloc(self.size, 1, ctypes.byref(address), ctypes.byref(handle)))
        self._check(lib, lib.vmm_export(handle, ctypes.byref(fd)))
        self.fd = fd.value
        self.__cuda_array_interface__ = {"shape": (self.size,), "typestr": "|u1", "version": 3,
                                         "data": (address.value, False)}
        self.bytes = torch.as_tensor(self, device=device)

    def _check(self, lib, rc: int) -> None:
        if rc != 0:
            raise Refusal("machine", f"device memory of {self.size >> 20} MiB: {lib.vmm_error(rc).decode()}",
                          "smaller shapes, or a device with more memory")


class CudaDevice:
    name = "cuda"
    voids = True  # what still computes here makes every step slower

    def __init__(self, ordinal: int, threads: int):
        if not torch.cuda.is_available():
            raise Refusal("missing", "torch sees no CUDA device",
                          "nvidia-smi tells whether the driver is there; --target cpu needs none")
        torch.set_num_threads(threads)
        self.torch_device = torch.device("cuda", ordinal)
        torch.zeros(1, device=self.torch_device)
        self._lib = device_library()
        rc = self._lib.vmm_open(ordinal)
        if rc:
            raise Refusal("machine", f"open the device: {self._lib.vmm_error(rc).decode()}")
        self._stream = None

    def slab(self, size: int) -> Slab:
        return Slab(size, self._lib, self.torch_device)

    def free_bytes(self) -> int:
        free, _ = torch.cuda.mem_get_info(self.torch_device)
        return free + torch.cuda.memory_reserved(self.torch_device) - torch.cuda.memory_allocated(self.torch_device)

    def set_budget(self) -> int:
        """Bytes that input sets may take; the rest is for references."""
        return int(torch.cuda.mem_get_info(self.torch_device)[0] * 0.4)

    def copy(self, to: torch.Tensor, source: torch.Tensor) -> None:
        """By a kernel, never by the copy engine, which would not notice another context's work."""
        whole = to.numel() // 8 * 8
        if whole and source.data_ptr() % 8 == 0 and to.data_ptr() % 8 == 0:
            torch.bitwise_or(source[:whole].view(torch.int64), 0, out=to[:whole].view(torch.int64))
        else:
            whole = 0
        if whole < to.numel():
            torch.bitwise_or(source[whole:], 0, out=to[whole:])

    def sync(self) -> None:
        torch.cuda.synchronize(self.torch_device)

    def flush(self) -> None:
        """Ends in reads: lines that are dirty would cost the next reader 20 us."""
        if self._stream is None:
            size = max(FLUSH_MIN, 2 * torch.cuda.get_device_properties(self.torch_device).L2_cache_size)
            self._stream = torch.ones(size // 8, dtype=torch.float64, device=self.torch_device)
        self._stream.fill_(1.0)
        self._stream.sum()
        self._stream.sum()

    def facts(self) -> dict:
        p = torch.cuda.get_device_properties(self.torch_device)
        uuid = str(p.uuid)
        self._nvml = Nvml(uuid if uuid.startswith("GPU-") else f"GPU-{uuid}")
        return {"name": p.name, "uuid": f"GPU-{uuid.removeprefix('GPU-')}", "driver": self._nvml.driver(),
                "sm_count": p.multi_processor_count, "arch": f"{p.major}{p.minor}" + ("a" if p.major in (9, 10) else ""),
                "l2_bytes": p.L2_cache_size, "total_bytes": p.total_memory, "clocks": self._nvml.clocks(),
                "throttle": self._nvml.throttle()}

    def health(self) -> dict:
        return {"clocks": self._nvml.clocks(), "throttle": self._nvml.throttle(), "temperature": self._nvml.temperature()}

    def spin(self) -> float:
        """A kernel of known cycles; its device time in microseconds."""
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        torch.cuda._sleep(SPIN_CYCLES)
        end.record()
        torch.cuda.synchronize(self.torch_device)
        return begin.elapsed_time(end) * 1e3

