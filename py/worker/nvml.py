"""The driver's own facts by NVML: nvidia-smi, a process of its own, would cost a fifth of a second each time."""
import ctypes

SM, MEMORY, GPU_SENSOR, TEXT = 1, 2, 0, 96


class Nvml:
    """Empty texts where the library or a value is not there."""

    def __init__(self, uuid: str):
        self._device = ctypes.c_void_p()
        try:
            self._lib = ctypes.CDLL("libnvidia-ml.so.1")
            ok = self._lib.nvmlInit_v2() == 0 and \
                self._lib.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(self._device)) == 0
        except (OSError, AttributeError):
            ok = False
        if not ok:
            self._lib = None

    def _number(self, name: str, *arguments, kind=ctypes.c_uint) -> str:
        value = kind()
        if self._lib is None or not hasattr(self._lib, name):
            return ""
        rc = getattr(self._lib, name)(self._device, *arguments, ctypes.byref(value))
        return str(value.value) if rc == 0 else ""

    def driver(self) -> str:
        text = ctypes.create_string_buffer(TEXT)
        if self._lib is None or self._lib.nvmlSystemGetDriverVersion(text, TEXT) != 0:
            return ""
        return text.value.decode()

    def clocks(self) -> str:
        return f"sm {self._number('nvmlDeviceGetClockInfo', SM)} MHz, memory {self._number('nvmlDeviceGetClockInfo', MEMORY)} MHz"

    def throttle(self) -> str:
        """Bits of nvmlClocksEventReasons, in hexadecimal."""
        bits = self._number("nvmlDeviceGetCurrentClocksThrottleReasons", kind=ctypes.c_ulonglong)
        return f"0x{int(bits):016x}" if bits else ""

    def temperature(self) -> str:
        return self._number("nvmlDeviceGetTemperature", GPU_SENSOR)
