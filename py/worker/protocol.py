"""Frames of docs/worker.md over one inherited stream socket: 4 bytes of length, then JSON, descriptors beside."""
import array
import json
import math
import socket
import struct

FRAME_MAX = 64 << 20


class Refusal(Exception):
    """An answer with ok:false. code: task, machine, missing or protocol."""

    def __init__(self, code: str, text: str, hint: str = ""):
        super().__init__(text)
        self.code, self.text, self.hint = code, text, hint


def plain(value):
    """JSON has no inf and nan: they travel as null. Text of a task's own exceptions may hold what no reader takes."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode().replace("\0", "?")
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


class Channel:
    def __init__(self, fd: int):
        self.sock = socket.socket(fileno=fd)

    def receive(self) -> dict | None:
        """The next question, None when the examiner is gone."""
        head = self._exactly(4)
        if head is None:
            return None
        size = struct.unpack("<I", head)[0]
        if size > FRAME_MAX:
            raise Refusal("protocol", f"frame of {size} bytes, limit {FRAME_MAX}")
        body = self._exactly(size)
        return None if body is None else json.loads(body)

    def _exactly(self, size: int) -> bytes | None:
        got = bytearray()
        while len(got) < size:
            part = self.sock.recv(min(size - len(got), 1 << 20))
            if not part:
                return None
            got += part
        return bytes(got)

    def send(self, answer: dict, fds=()) -> None:
        body = json.dumps(plain(answer), allow_nan=False).encode()
        frame = struct.pack("<I", len(body)) + body
        beside = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        sent = self.sock.sendmsg([frame], beside)
        if sent < len(frame):
            self.sock.sendall(frame[sent:])
