"""A torch candidate in its boxed process: model_new.py and its extension, behind the runner's calls."""
import copy
import ctypes
import importlib.machinery
import importlib.util
import sys
import types

import torch

from worker import arguments
from worker.state import entries as state_entries
from worker.state import move_attributes
from worker.tree import flatten, rebuild

from . import contract, doors
from .operators import Removed, Remover


class Fault(Exception):
    """What the candidate did, in words for its author."""


def _words(e: BaseException) -> str:
    return " ".join(str(e).split())


def _embedded(library: ctypes.CDLL, name: str) -> str:
    size = ctypes.c_uint64.in_dll(library, f"{name}_bytes").value
    return bytes((ctypes.c_char * size).in_dll(library, name)).decode()


def _module(name: str, source: str) -> types.ModuleType:
    module = types.ModuleType(name)
    module.__file__ = f"{name}.py"
    sys.modules[name] = module
    exec(compile(source, module.__file__, "exec"), module.__dict__)
    return module


class Candidate:
    def __init__(self, library: ctypes.CDLL, host: contract.Host, task_source: str, remover: Remover):
        self.library, self.host, self.task_source, self.remover = library, host, task_source, remover
        self.device = -1
        self.pristine = self.model = None
        self.ready: dict[int, tuple] = {}
        self.callbacks = (contract.HELLO(self._guarded(self.hello)), contract.CODE(self._guarded(self.code)),
                          contract.SETUP(self._guarded(self.setup)), contract.FORWARD(self._guarded(self.forward)))
        host.hello, host.code, host.setup, host.forward = self.callbacks

    def _guarded(self, step):
        def run(*args) -> int:
            try:
                step(*args)
                return 0
            except BaseException as e:  # SystemExit, too: it is the candidate's answer
                head = "forbidden" if isinstance(e, Removed) else type(e).__name__
                text = _words(e) if isinstance(e, Fault) else f"{head}: {_words(e)}{self._bound(e)}"
                self.host.text = text.encode(errors="replace")[:contract.TEXT_MAX - 1]
                return 1
        return run

    def _bound(self, e: BaseException) -> str:
        """Where a function is missing from the extension: those that there are."""
        extension = sys.modules.get("cuda_extension")
        if not isinstance(e, (AttributeError, ImportError)) or extension is None or "cuda_extension" not in str(e):
            return ""
        names = [n for n in dir(extension) if not n.startswith("_")]
        return f"; the *_binding.cpp of kernels/ register {', '.join(names) if names else 'none'}"

    # ---- steps ----

    def hello(self, threads: int, device: int) -> None:
        self.device = device
        torch.set_grad_enabled(False)
        torch.set_num_threads(threads)
        if device >= 0:
            torch.cuda.set_device(device)
            torch.empty(1, device=f"cuda:{device}")

    def code(self, fd: int) -> None:
        self.task = _module("model", self.task_source)
        path = f"/proc/self/fd/{fd}"
        doors.close(path)
        loader = importlib.machinery.ExtensionFileLoader("cuda_extension", path)
        spec = importlib.util.spec_from_loader("cuda_extension", loader)
        extension = importlib.util.module_from_spec(spec)
        loader.exec_module(extension)
        sys.modules["cuda_extension"] = extension
        module = _module("model_new", _embedded(ctypes.CDLL(path), "ca_model_new"))
        if not hasattr(module, "ModelNew"):
            raise Fault("model_new.py has no class ModelNew")
        self.pristine = self._construct(module.ModelNew)
        self._learn_from_task()
        self.remover.after_construction()

    def _make(self, cls) -> torch.nn.Module:
        init = self.task.get_init_inputs() if hasattr(self.task, "get_init_inputs") else []
        args, kw = arguments.of_init(init, cls)
        return cls(*args, **kw)

    def _construct(self, cls) -> torch.nn.Module:
        model = self._make(cls)
        if not isinstance(model, torch.nn.Module):
            raise Fault(f"ModelNew makes a {type(model).__name__}, not a torch.nn.Module")
        model = model.eval().requires_grad_(False)
        if self.device >= 0:
            model = model.to(f"cuda:{self.device}")
            move_attributes(model, torch.device("cuda", self.device))
        return model

    def _learn_from_task(self) -> None:
        """The nest that forward takes and the names of the task's state, made without memory."""
        with torch.device("meta"):
            self.example = self.task.get_inputs()
        self.state_names = self._task_state()
        forward = self.task.Model.forward if hasattr(self.task, "Model") else self.pristine.forward
        self.by_keyword = arguments.by_keyword(self.example, forward)

    def _task_state(self) -> set[str]:
        """Empty where Model cannot be made without memory: then nothing that is missing is excused."""
        try:
            with torch.device("meta"):
                return set(self._make(self.task.Model).state_dict())
        except Exception:
            return set()

    def setup(self, call, _state) -> None:
        """New weights: a fresh copy of the model as it was made, and load_state_dict, as its user would."""
        self.ready.clear()
        self.model = None
        self.library.torch_memory_reset()
        self.model = copy.deepcopy(self.pristine)
        values = {v.name.decode(): contract.tensor(v, self.device) for v in contract.entries(call.contents.param)
                  if v.kind == contract.TENSOR}
        self._load({k: v for k, v in values.items() if not k.startswith("attr:")},
                   {v.name.decode().removeprefix("attr:") for v in contract.entries(call.contents.input)})
        held = {e.name: e for e in state_entries(self.model)}
        for name, value in values.items():
            if name.startswith("attr:") and name in held:
                held[name].put(value.clone())

    def _load(self, state: dict, carried: set[str]) -> None:
        """Strict, but for what arrives with each call because forward changes it."""
        found = self.model.load_state_dict(state, strict=False)
        if found is None:  # a method of its own
            return
        missing = [k for k in found.missing_keys if k not in carried]
        if missing:  # state of the task's that moves and decides nothing is not given
            missing = [k for k in missing if k not in self.state_names]
        if missing or found.unexpected_keys:
            raise Fault(f"load_state_dict: ModelNew keeps other state than Model: more {missing}, less {list(found.unexpected_keys)}")

    def _prepare(self, call) -> tuple:
        values = contract.entries(call.contents.input)
        carried = [v.name.decode() for v in values if v.name.startswith(b"attr:")]
        leaves = [contract.leaf(v, self.device) for v in values]
        nest = rebuild(self.example, iter(leaves[:len(leaves) - len(carried)]))
        outs = [contract.tensor(v, self.device) for v in contract.entries(call.contents.out)]
        sizes = (ctypes.c_uint64 * len(outs))(*(t.numel() * t.element_size() for t in outs))
        return nest, list(zip(carried, leaves[len(leaves) - len(carried):])), outs, sizes

    def _held(self, carried: list) -> dict:
        """State that forward changes: attributes, and registered buffers that go by the same prefix."""
        held = {e.name: e for e in state_entries(self.model)}
        found = {name: held.get(name) or held.get(name.removeprefix("attr:")) for name, _ in carried}
        for name, entry in found.items():
            if entry is None:
                raise Fault(f"ModelNew keeps no '{name.removeprefix('attr:')}': the task's forward changes it")
        return found

    def forward(self, call) -> None:
        key = ctypes.addressof(call.contents)
        if key not in self.ready:
            self.ready[key] = self._prepare(call)
        nest, carried, outs, sizes = self.ready[key]
        if carried:
            held = self._held(carried)
            for name, value in carried:
                held[name].put(value.clone())
        if self.device >= 0:
            self.library.torch_memory_begin(ctypes.byref(call.contents.out), sizes)
        result = arguments.call(self.model, nest, self.by_keyword)
        results = [t for _, t in flatten(result, "out") if t is not None]
        if carried:
            held = self._held(carried)
            results += [held[name].tensor for name, _ in carried]
        self._hand_over(results, outs)
        if self.device >= 0:
            self.library.torch_memory_end((ctypes.c_uint64 * len(outs))(*(t.data_ptr() for t in results)))

    def _hand_over(self, results: list, outs: list) -> None:
        if len(results) != len(outs):
            raise Fault(f"forward returned {len(results)} tensors, the task's returns {len(outs)}")
        for i, (result, out) in enumerate(zip(results, outs)):
            if not isinstance(result, torch.Tensor):
                raise Fault(f"output {i} is a {type(result).__name__}, not a tensor")
            if result.shape != out.shape or result.dtype != out.dtype:
                raise Fault(f"output {i} is {result.dtype} {list(result.shape)}, the task's is {out.dtype} {list(out.shape)}")
            if result.data_ptr() != out.data_ptr() or result.stride() != out.stride():
                out.copy_(result)
