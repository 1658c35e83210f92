"""The worker over its socket, as docs/worker.md says: right answers pass, and each way to be wrong fails.

The test takes the examiner's side and the candidate's: it computes the answers itself from what lies in the shared
memory and writes them there. CUDA_AGENT_DEVICE_LIB names libca_device.so.
"""
import array
import atexit
import json
import mmap
import os
import pathlib
import socket
import struct
import tempfile
import textwrap
import unittest

import torch

PY = pathlib.Path(__file__).resolve().parents[2] / "py"
DTYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16, "i64": torch.int64,
          "i32": torch.int32, "bool": torch.bool}
PYTHON = __import__("sys").executable
ROOM = tempfile.TemporaryDirectory(prefix="worker-tests-")  # for what unboxed workers leave; goes with the tests


class Refused(Exception):
    def __init__(self, error: dict):
        super().__init__(f"{error['code']}: {error['text']}")
        self.code, self.text, self.hint = error["code"], error["text"], error["hint"]


class Worker:
    """One worker process, its socket as descriptor 3."""

    def __init__(self):
        ours, theirs = socket.socketpair()
        env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
        env |= {"PYTHONPATH": str(PY), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "2", "CUDA_VISIBLE_DEVICES": "",
                "TMPDIR": ROOM.name, "TORCHINDUCTOR_VEC_ISA_OK": "1"}  # Inductor need not compile and import to find that out
        self.log = os.memfd_create("log")
        self.pid = os.posix_spawn(PYTHON, [PYTHON, "-m", "worker"], env,
                                  file_actions=[(os.POSIX_SPAWN_DUP2, theirs.fileno(), 3),
                                                (os.POSIX_SPAWN_DUP2, self.log, 2)])
        theirs.close()
        self.sock, self.n = ours, 0
        self.sock.settimeout(120)

    def _exactly(self, n: int) -> bytes:
        got, fds = b"", array.array("i")
        while len(got) < n:
            part, beside, _, _ = self.sock.recvmsg(n - len(got), socket.CMSG_SPACE(8 * 4))
            if not part:
                raise AssertionError("the worker is gone: " + os.pread(self.log, 1 << 16, 0).decode())
            got += part
            for _, _, data in beside:
                fds.frombytes(data)
        self.fds += list(fds)
        return got

    def ask(self, op: str, **members) -> dict:
        self.n += 1
        self.fds = []
        body = json.dumps({"v": 1, "id": self.n, "op": op} | members).encode()
        self.sock.sendall(struct.pack("<I", len(body)) + body)
        answer = json.loads(self._exactly(struct.unpack("<I", self._exactly(4))[0]))
        assert answer["id"] == self.n, answer
        if not answer["ok"]:
            raise Refused(answer["error"])
        return answer

    def end(self) -> int:
        """The exit status after the socket is closed."""
        self.sock.close()
        os.close(self.log)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


shared = []


def shared_worker() -> Worker:
    """One process loads one task after the other: a start costs seconds."""
    if not shared:
        shared.append(Worker())
        shared[0].ask("hello", target="cpu", threads=2, device=0)
    return shared[0]


def end_shared_worker() -> None:
    while shared:
        shared.pop().end()


atexit.register(end_shared_worker)


class Session:
    """A worker with a loaded task, bound, with views on its shared memory."""

    def __init__(self, source: str, preset: str = "cuda-agent", sets: int = 2):
        self.worker = shared_worker()
        try:
            self.loaded = self.ask("load", name="tiny", source=textwrap.dedent(source), preset=preset)
            self.sig = self.loaded["signature"]
            self.place = self.ask("bind", sets=sets)
        except Refused:
            raise
        except BaseException:
            end_shared_worker()
            raise
        self.fds = self.worker.fds
        self.maps = [mmap.mmap(fd, slab["bytes"]) for fd, slab in zip(self.fds, self.place["slabs"])]
        self.slabs = [torch.frombuffer(m, dtype=torch.uint8) for m in self.maps]

    def ask(self, op: str, **members) -> dict:
        return self.worker.ask(op, **members)

    def view(self, value: dict, place):
        """A tensor in shared memory, or the plain value."""
        if place is None:
            return {"int": value["i"], "flag": bool(value["i"]), "real": value["r"], "text": value["text"], "none": None}[value["kind"]]
        slab, at = place
        flat = self.slabs[slab][at:at + value["bytes"]].view(DTYPES[value["dtype"]])
        return flat.as_strided(value["shape"], value["stride"])

    def inputs(self, s: int = 0) -> dict:
        return {v["name"]: self.view(v, p) for v, p in zip(self.sig["in"], self.place["sets"][s]["in"])}

    def params(self) -> dict:
        return {v["name"]: self.view(v, p) for v, p in zip(self.sig["param"], self.place["param"])}

    def outputs(self, s: int = 0) -> list:
        return [self.view(v, p) for v, p in zip(self.sig["out"], self.place["sets"][s]["out"])]

    def draw(self, family: str = "own", weights: str = "keep") -> None:
        self.ask("draw", sets=[0, 1], family=family, weights=weights, poison=True, flush=False)

    def answer(self, forward, s: int = 0) -> None:
        """Do what a right candidate does."""
        found = forward(self.inputs(s), self.params())
        for to, value in zip(self.outputs(s), found if isinstance(found, tuple) else (found,)):
            to.copy_(value)

    def compare(self, sets=(0, 1), **more) -> dict:
        return self.ask("compare", sets=list(sets), **more)

    def end(self) -> None:
        self.slabs = self.maps = None
        for fd in self.fds:
            os.close(fd)


HEAD = "import torch\nimport torch.nn as nn\n"


def source(body: str, inputs: str, init: str = "", members: str = "", args: str = "x") -> str:
    text = HEAD + "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    text += textwrap.indent(init, " " * 8) + ("\n" if init else "")
    text += f"    def forward(self, {args}):\n" + textwrap.indent(textwrap.dedent(body), " " * 8) + "\n"
    return text + f"{members}\ndef get_inputs():\n    return {inputs}\n\ndef get_init_inputs():\n    return []\n"


LINEAR = source("return torch.relu(self.fc(x))", "[torch.randn(128, 96)]", "self.fc = nn.Linear(96, 64)")


def linear(i: dict, p: dict):
    return torch.relu(i["x"] @ p["fc.weight"].T + p["fc.bias"])


# name, source, what a right candidate computes
RIGHT = {
    "fp32": (LINEAR, linear),
    "bf16": (source("return self.fc(x) * 2", "[torch.randn(64, 96, dtype=torch.bfloat16)]",
                    "self.fc = nn.Linear(96, 48).to(torch.bfloat16)"),
             lambda i, p: 2 * (i["x"].float() @ p["fc.weight"].float().T + p["fc.bias"].float())),
    "fp16": (source("return torch.tanh(x) * self.scale", "[torch.randn(64, 96).half()]",
                    "self.scale = nn.Parameter(torch.rand(96).half())"),
             lambda i, p: torch.tanh(i["x"].float()) * p["scale"].float()),
    "tied weights": (source("return self.b(torch.relu(self.a(x)))", "[torch.randn(64, 48)]",
                            "self.a, self.b = nn.Linear(48, 48, bias=False), nn.Linear(48, 48, bias=False)\n"
                            "self.b.weight = self.a.weight"),
                     lambda i, p: torch.relu(i["x"] @ p["a.weight"].T) @ p["b.weight"].T),
    "dict input": (source("return x * scale + more['bias']",
                          "{'x': torch.randn(64, 32), 'scale': 0.5, 'more': {'bias': torch.randn(32)}}",
                          args="x, scale, more"),
                   lambda i, p: i["x"] * i["scale"] + i["more.bias"]),
    "int output": (source("return (x @ self.codes.T).argmax(-1)", "[torch.randn(200, 16)]",
                          "self.codes = nn.Parameter(torch.randn(32, 16))"),
                   lambda i, p: (i["x"] @ p["codes"].T).argmax(-1)),
    "several outputs": (source("return x.mean(-1), {'most': x.amax(-1), 'sum': xs[0] + xs[1]}",
                               "[torch.randn(300, 20), [torch.randn(9, 7), torch.randn(9, 7)]]", args="x, xs"),
                        lambda i, p: (i["x"].mean(-1), i["x"].amax(-1), i["xs.0"] + i["xs.1"])),
    "strided input": (source("return x.sum(1) + self.shift", "[torch.randn(40, 30, 20).transpose(1, 2)]",
                             "self.register_buffer('shift', torch.arange(30.0))"),
                      lambda i, p: i["x"].sum(1) + p["shift"]),
}


class Right(unittest.TestCase):
    """On each model and every family: the right answer passes, and what comes near it does not."""

    def run_model(self, name: str) -> None:
        text, forward = RIGHT[name]
        s = Session(text)
        try:
            self.assertIn("own", s.loaded["families"])
            for family in s.loaded["families"]:
                s.draw(family, "redraw")
                with self.subTest(family=family, what="untouched memory"):
                    self.assertFalse(s.compare()["pass"])
                s.answer(forward, 0)
                with self.subTest(family=family, what="one set of two"):
                    self.assertFalse(s.compare()["pass"])
                    self.assertTrue(s.compare([0])["pass"])
                s.answer(forward, 1)
                with self.subTest(family=family, what="right"):
                    found = s.compare()
                    self.assertTrue(found["pass"], found)
                    self.assertTrue(found["inputs_intact"])
            self.wrong(s, forward)
        finally:
            s.end()

    def wrong(self, s: Session, forward) -> None:
        def zeros(out):
            out.zero_()

        def one_element(out):
            flat = out.view(-1)
            flat[flat.numel() // 2] = flat[flat.numel() // 2] + 1 if not out.is_floating_point() else flat[flat.numel() // 2] * 2 + 3

        def last_row(out):
            out[-1:] = 0 if out.is_floating_point() else out[-1:] + 1

        def not_a_number(out):
            out.view(-1)[-1] = float("nan") if out.is_floating_point() else -(1 << 40)

        def mean(out):
            out.copy_(out.double().mean())

        for change in (zeros, one_element, last_row, not_a_number, mean):
            for k in range(len(s.outputs())):
                s.draw("own")
                s.answer(forward, 0)
                s.answer(forward, 1)
                change(s.outputs(1)[k])
                with self.subTest(change=change.__name__, output=k):
                    found = s.compare()
                    self.assertFalse(found["pass"], found)
                    bad = [r for r in found["outputs"] if r["misses"]]
                    self.assertEqual([(r["set"], r["output"]) for r in bad], [(1, s.sig["out"][k]["name"])])
                    self.assertTrue(bad[0]["first"] >= 0 and bad[0]["reason"])


def add_rows() -> None:
    for name in RIGHT:
        setattr(Right, "test_" + name.replace(" ", "_"), lambda self, name=name: self.run_model(name))


add_rows()


class Signature(unittest.TestCase):
    def test_names_and_kinds(self):
        s = Session(source("return x * scale if on else x + (bias if bias is not None else 0)",
                           "[torch.randn(4, 3), 2.5, True, None]", args="x, scale, on, bias"))
        try:
            self.assertEqual([(v["name"], v["kind"]) for v in s.sig["in"]],
                             [("x", "tensor"), ("scale", "real"), ("on", "flag"), ("bias", "none")])
            self.assertEqual(s.sig["in"][0]["shape"], [4, 3])
            self.assertEqual(s.place["sets"][0]["in"][1:], [None, None, None])
            self.assertEqual([v["name"] for v in s.sig["out"]], ["out"])
        finally:
            s.end()

    def test_tied_weights_share_a_place(self):
        s = Session(RIGHT["tied weights"][0])
        try:
            self.assertEqual([v["alias"] for v in s.sig["param"]], [-1, 0])
            self.assertEqual(s.place["param"][0], s.place["param"][1])
        finally:
            s.end()

    def test_infinity_is_text(self):
        s = Session(source("return x.clamp(max=top)", "[torch.randn(4, 3), float('inf')]", args="x, top"))
        try:
            self.assertEqual(s.sig["in"][1]["r"], "inf")
        finally:
            s.end()

    def test_places(self):
        s = Session(RIGHT["several outputs"][0])
        try:
            spans = []
            for one in s.place["sets"]:
                for v, p in zip(s.sig["in"] + s.sig["out"], one["in"] + one["out"]):
                    self.assertEqual(p[1] % 256, 0)
                    spans.append((p[0], p[1], p[1] + v["bytes"]))
            spans.sort()
            for (slab, _, end), (other, start, _) in zip(spans, spans[1:]):
                self.assertTrue(slab != other or end <= start)
            for fd, slab in zip(s.fds, s.place["slabs"]):
                self.assertEqual(slab["kind"], "memfd")
                with self.assertRaises(PermissionError):
                    os.ftruncate(fd, 0)
        finally:
            s.end()


class Cheats(unittest.TestCase):
    def setUp(self):
        self.s = Session(LINEAR)

    def tearDown(self):
        self.s.end()

    def test_what_hardly_varies(self):
        """Rows of equal values have a mean of equal values: eager's rounding must not fail the right answer."""
        s = Session(source("return x.softmax(-1).mean(-1)", "[torch.randn(2000, 20)]"))
        try:
            s.draw()
            for k in (0, 1):
                s.answer(lambda i, p: i["x"].softmax(-1).sum(-1) / 20, k)
            self.assertTrue(s.compare()["pass"])
            s.outputs(1)[0][-1] = 0
            self.assertFalse(s.compare()["pass"])
        finally:
            s.end()

    def test_inputs_are_new_each_time(self):
        s = self.s
        s.draw()
        first = s.inputs(0)["x"].clone()
        self.assertFalse(torch.equal(first, s.inputs(1)["x"]))
        s.draw()
        self.assertFalse(torch.equal(first, s.inputs(0)["x"]))

    def test_changed_inputs(self):
        s = self.s
        s.draw()
        s.answer(linear, 0)
        s.answer(linear, 1)
        self.assertTrue(s.compare()["pass"])
        s.inputs(1)["x"][-1, -1] += 1e-3  # and the reference does not follow
        found = s.compare()
        self.assertFalse(found["inputs_intact"])
        self.assertFalse(found["pass"])

    def test_writing_beside_an_output(self):
        s = self.s
        slab, at = s.place["sets"][1]["out"][0]
        for place in (at - 1, at + s.sig["out"][0]["bytes"]):
            s.draw()
            s.answer(linear, 0)
            s.answer(linear, 1)
            self.assertTrue(s.compare()["guards_intact"])
            s.slabs[slab][place] ^= 1
            found = s.compare()
            self.assertEqual((found["guards_intact"], found["inputs_intact"], found["pass"]), (False, True, False))

    def test_answers_to_easier_inputs(self):
        s = self.s
        s.draw()
        for k in (0, 1):
            s.inputs(k)["x"].zero_()
            s.answer(linear, k)
        self.assertFalse(s.compare()["pass"])

    def test_weights_of_before(self):
        s = self.s
        for weights in ("redraw", "touch"):
            old = {n: t.clone() for n, t in s.params().items()}
            s.draw("own", weights)
            for n, t in s.params().items():
                self.assertFalse(torch.equal(t, old[n]), n)
            for k in (0, 1):
                s.outputs(k)[0].copy_(linear(s.inputs(k), old))
            self.assertFalse(s.compare()["pass"], weights)
            s.answer(linear, 0)
            s.answer(linear, 1)
            self.assertTrue(s.compare()["pass"], weights)

    def test_work_after_the_sample(self):
        s = self.s
        s.draw()
        s.answer(linear, 0)
        s.answer(linear, 1)
        self.assertGreater(s.ask("sample")["blocks"], 0)
        self.assertEqual(s.ask("settle")["stale_blocks"], 0)
        s.draw()
        s.answer(linear, 0)
        s.ask("sample")
        s.answer(linear, 1)
        self.assertGreater(s.ask("settle")["stale_blocks"], 0)

    def test_a_call_that_was_left_out(self):
        s = self.s
        for answered, untouched in (((0, 1), []), ((0,), [1]), ((), [0, 1])):
            s.draw()
            for k in answered:
                s.answer(linear, k)
            s.ask("sample")
            self.assertEqual(s.ask("settle")["untouched"], untouched)
        s.draw()
        for k in (0, 1):  # all but a line of 64 floats
            kept = s.outputs(k)[0].view(-1)[64:128].clone()
            s.answer(linear, k)
            s.outputs(k)[0].view(-1)[64:128] = kept
        s.ask("sample")
        self.assertEqual(s.ask("settle")["untouched"], [0, 1])

    def test_precision_classes(self):
        s = self.s

        def rounded(dtype):
            def forward(i, p):
                cut = {n: t.to(dtype).float() for n, t in p.items()}
                return linear({"x": i["x"].to(dtype).float()}, cut)
            return forward

        for dtype, classes in ((torch.float32, ("fp32",)), (torch.float16, ("tf32", "fp16"))):
            s.draw()
            s.answer(rounded(dtype), 0)
            s.answer(rounded(dtype), 1)
            found = s.compare(precision=True)
            self.assertIn(found["precision"], classes)

    def test_arms(self):
        s = self.s
        self.assertTrue(s.ask("run", arm="eager", prepare=True)["ready"])
        self.assertFalse(s.ask("run", arm="graph_eager", prepare=True)["ready"])  # cuda only
        s.draw()
        self.assertGreater(s.ask("run", arm="eager", sets=[0, 1])["span_us"], 0)
        self.assertTrue(s.compare()["pass"])


class Presets(unittest.TestCase):
    def test_an_error_of_a_thousandth(self):
        for preset, passes in (("cuda-agent", True), ("strict", False)):
            s = Session(LINEAR, preset)
            try:
                s.draw()
                for k in (0, 1):
                    s.answer(lambda i, p: linear(i, p) * 1.001, k)
                with self.subTest(preset=preset):
                    self.assertEqual(s.compare()["pass"], passes)
            finally:
                s.end()


# body, inputs, init, part of the reason
REFUSED = {
    "random draw": ("return x + torch.randn_like(x)", "[torch.randn(8, 8)]", "", "random"),
    "a counter": ("self.n += 1\nreturn x * self.n", "[torch.randn(8, 8)]", "self.n = 0", "state"),
    "input in place": ("return x.mul_(2)", "[torch.randn(8, 8)]", "", "in place"),
    "no tensor": ("return float(x.sum())", "[torch.randn(8, 8)]", "", "float, not a tensor"),
    "nothing": ("return ()", "[torch.randn(8, 8)]", "", "returned nothing"),
    "sparse input": ("return x.to_dense()", "[torch.eye(4).to_sparse()]", "", "sparse"),
    "sparse output": ("return x.to_sparse()", "[torch.eye(4)]", "", "sparse"),
    "sparse weight": ("return x + self.w.to_dense()", "[torch.eye(4)]",
                      "self.w = nn.Parameter(torch.eye(4).to_sparse())", "sparse"),
    "nine dimensions": ("return x.sum()", "[torch.ones([1] * 9)]", "", "9 dimensions"),
    "an object": ("return x", "[torch.randn(8, 8), object()]", "", "object"),
    "raises": ("raise KeyError('k')", "[torch.randn(8, 8)]", "", "KeyError"),
    "exits": ("raise SystemExit(0)", "[torch.randn(8, 8)]", "", "SystemExit"),
    "interrupts": ("raise KeyboardInterrupt", "[torch.randn(8, 8)]", "", "KeyboardInterrupt"),
    "never ends to call itself": ("return self.forward(x)", "[torch.randn(8, 8)]", "", "RecursionError"),
    "a nest too deep": ("for _ in range(5000):\n    x = [x]\nreturn x", "[torch.randn(8, 8)]", "", "deep"),
    "a name that commands a terminal": ("return {'a\\x1b[2J': x}", "[torch.randn(8, 8)]", "", "not printable"),
    "a long name": ("return {'a' * 130: x}", "[torch.randn(8, 8)]", "", "longer than 127 bytes"),
    "a long text": ("return x", "[torch.randn(8, 8), 'a' * 130]", "", "longer than 127 bytes"),
    "raises text that no reader takes": (r"raise ValueError('a\ud800\x00b')", "[torch.randn(8, 8)]", "", "a??b"),
    "raises when made": ("return x", "[torch.randn(8, 8)]", "raise OSError('o')", "Model(...) raised OSError"),
    "inputs raise": ("return x", "[1 / 0]", "", "get_inputs() raised ZeroDivisionError"),
}


class Refusals(unittest.TestCase):
    """One worker takes them all: a task at fault is an answer, and the next one loads."""

    def test_tasks(self):
        w = Worker()
        w.ask("hello", target="cpu", threads=1, device=0)
        for name, (body, inputs, init, reason) in REFUSED.items():
            args = "x, y=None" if name in ("an object", "a long text") else "x"
            with self.subTest(task=name), self.assertRaises(Refused) as caught:
                w.ask("load", name="bad", source=source(body, inputs, init, args=args), preset="cuda-agent")
            self.assertEqual(caught.exception.code, "task", caught.exception.text)
            self.assertIn(reason, caught.exception.text)
        for text, reason in (("def f(:", "line 1"), ("x = 1", "no Model"), ("import nowhere_at_all", "ModuleNotFoundError")):
            with self.subTest(source=text), self.assertRaises(Refused) as caught:
                w.ask("load", name="bad", source=text, preset="cuda-agent")
            self.assertIn(reason, caught.exception.text)
        self.assertEqual(w.ask("load", name="good", source=LINEAR, preset="cuda-agent")["signature"]["out"][0]["shape"], [128, 64])
        self.assertEqual(w.end(), 0)

    def test_protocol(self):
        w = Worker()
        for op, members in (("nonsense", {}), ("__init__", {}), ("hello", {"v": 2, "target": "cpu"})):
            with self.subTest(op=op), self.assertRaises(Refused) as caught:
                w.ask(op, **members)
            self.assertEqual(caught.exception.code, "protocol")
        w.ask("bye")
        self.assertEqual(w.end(), 0)


if __name__ == "__main__":
    unittest.main()
