"""A task file becomes a model and example inputs on the device."""
import contextlib
import importlib.util
import inspect
import pathlib
import random
import sys
import traceback

import torch

from . import arguments
from .protocol import Refusal
from .signature import DTYPES, aliases, storage_key  # noqa: F401  the tracer takes them from here
from .state import entries, move_attributes
from .tree import flatten, map_tensors, rebuild

CONTRACT = "it needs class Model(nn.Module), get_inputs() and get_init_inputs()"


def seed_all(seed: int) -> None:
    torch.manual_seed(seed)
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed & 0xFFFFFFFF)


def first_line(e: BaseException) -> str:
    return (str(e).splitlines() or [""])[0][:300]


def out_of_memory(e: BaseException) -> bool:
    """PyTorch's host allocator raises a plain RuntimeError."""
    return isinstance(e, (torch.OutOfMemoryError, MemoryError)) or "can't allocate memory" in str(e)


class Task:
    """The loaded file: `model` in eval mode on `device`, example arguments, flat views of both.

    A call's leaves are forward's arguments, then the state that forward reads and changes (`carried`); its outputs
    are forward's, then that state's new values.
    """

    def __init__(self, name: str, source: str, device: torch.device, folder: str):
        self.name, self.device, self.notes = name, device, []
        self.carried, self.left_out = [], set()
        self.path = str(pathlib.Path(folder) / f"{''.join(c if c.isalnum() else '_' for c in name)}_task.py")
        pathlib.Path(self.path).write_text(source)
        self.module = self._import()
        self.model_class = self._model_class()
        if not hasattr(self.module, "get_inputs"):
            raise Refusal("task", "the task file has no get_inputs", CONTRACT)
        get_init = getattr(self.module, "get_init_inputs", None)
        self.init = self.guarded("get_init_inputs()", get_init) if get_init else []
        self.model = self.construct(1).to(device)
        move_attributes(self.model, device)
        self.draws_on_device = device.type != "cpu"
        self.example = self.draw(1)
        self.arg_names = self._argument_names()
        self.n_arguments = len(self.leaves(self.example))

    # ---- the file ----

    def _import(self):
        spec = importlib.util.spec_from_file_location("task_module", self.path)
        module = importlib.util.module_from_spec(spec)
        sys.modules["task_module"] = module
        try:
            spec.loader.exec_module(module)
        except SyntaxError as e:
            raise Refusal("task", f"syntax error in the task file, line {e.lineno}: {e.msg}") from e
        except BaseException as e:  # KeyboardInterrupt and SystemExit, too: ours come as signals to the whole box
            raise Refusal("task", f"the task file raised {type(e).__name__}: {first_line(e)}{self._line()}") from e
        return module

    def _model_class(self):
        if hasattr(self.module, "Model"):
            return self.module.Model
        own = [v for v in vars(self.module).values() if isinstance(v, type) and issubclass(v, torch.nn.Module)
               and v.__module__ == "task_module"]
        if len(own) != 1:
            raise Refusal("task", "the task file has no Model", CONTRACT)
        self.notes.append(f"there is no class Model: {own[0].__name__}, the only module of the file, is taken for it")
        return own[0]

    def _line(self) -> str:
        """Where in the task file the exception came from."""
        frames = [f for f in traceback.extract_tb(sys.exc_info()[2]) if f.filename == self.path]
        return f" (line {frames[-1].lineno})" if frames else ""

    def guarded(self, what: str, function, *args, **kw):
        """A call into the task's code; what it raises is the task's fault, lack of memory the machine's."""
        try:
            with torch.no_grad():
                return function(*args, **kw)
        except Refusal:
            raise
        except BaseException as e:
            if out_of_memory(e):
                raise Refusal("machine", f"{what}: not enough memory on {self.device}: {first_line(e)}",
                              "smaller shapes, or a machine with more memory") from e
            raise Refusal("task", f"{what} raised {type(e).__name__}: {first_line(e)}{self._line()}") from e

    # ---- model and inputs ----

    def construct(self, seed: int) -> torch.nn.Module:
        """Model(*init), or Model(*positional, **keywords) for the [positional, {keywords}] form."""
        seed_all(seed)
        args, kw = arguments.of_init(self.init, self.model_class)
        model = self.guarded(f"{self.model_class.__name__}(...)", self.model_class, *args, **kw)
        if not isinstance(model, torch.nn.Module):
            raise Refusal("task", f"Model makes a {type(model).__name__}, not a torch.nn.Module", CONTRACT)
        return model.eval().requires_grad_(False)

    def draw(self, seed: int):
        """get_inputs() under a seed, on the device: there its random functions draw a GiB in milliseconds."""
        seed_all(seed)
        if self.draws_on_device:
            try:
                with torch.device(self.device), torch.no_grad():
                    return self._settled(self.module.get_inputs())
            except Exception as e:  # names the cpu, or goes through numpy: then it is drawn on the host
                self.draws_on_device = False
                self.notes.append(f"inputs are drawn on the host: on the device get_inputs() raised {type(e).__name__}")
                torch.cuda.empty_cache()
                seed_all(seed)
        return self._settled(self.guarded("get_inputs()", self.module.get_inputs))

    def _settled(self, nest):
        return map_tensors(nest, lambda t: t.detach().to(self.device).resolve_conj().resolve_neg()
                           if t.layout == torch.strided else t)

    def _argument_names(self) -> list[str]:
        parameters = inspect.signature(self.model.forward).parameters.values()
        named = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        self.by_keyword = arguments.by_keyword(self.example, self.model.forward)
        if self.by_keyword:
            return list(self.example)
        rest = next((p.name for p in parameters if p.kind == p.VAR_POSITIONAL), "arg")
        n = len(self.example) if isinstance(self.example, (list, tuple)) else 1
        return [named[i] if i < len(named) else f"{rest}.{i - len(named)}" for i in range(n)]

    def leaves(self, nest) -> list[tuple[str, object]]:
        if self.by_keyword:
            return [leaf for k, v in nest.items() for leaf in flatten(v, k)]
        items = nest if isinstance(nest, (list, tuple)) else [nest]
        return [leaf for name, v in zip(self.arg_names, items) for leaf in flatten(v, name)]

    def nest(self, leaves: list):
        return rebuild(self.example, iter(leaves))

    def state(self) -> list[tuple[str, torch.Tensor]]:
        """What is given to a candidate as parameters."""
        return [(e.name, e.tensor) for e in self.state_entries()]

    def state_entries(self) -> list:
        moving = {*self.carried, *self.left_out}
        return [e for e in entries(self.model) if e.name not in moving]

    # ---- calls ----

    def forward(self, model, nest):
        return arguments.call(model, nest, self.by_keyword)

    def outputs(self, result) -> list[tuple[str, torch.Tensor]]:
        leaves = [(n, v) for n, v in flatten(result, "out") if v is not None]
        for name, leaf in leaves:
            if not isinstance(leaf, torch.Tensor):
                raise Refusal("task", f"output '{name}' is a {type(leaf).__name__}, not a tensor: not native")
            if leaf.layout != torch.strided:
                raise Refusal("task", f"output '{name}' is a sparse tensor: not native")
        if not leaves:
            raise Refusal("task", "forward returned nothing")
        return leaves

    def call(self, model, leaves: list, owner=None):
        """forward on these leaves. `owner` is the module under a compiled `model`. Raw, for `results`."""
        if not self.carried:
            return self.forward(model, self.nest(leaves)), []
        held = {e.name: e for e in entries(owner or model)}
        for name, value in zip(self.carried, leaves[self.n_arguments:]):
            held[name].put(value.clone())  # forward may write it in place
        result = self.forward(model, self.nest(leaves[:self.n_arguments]))
        held = {e.name: e.tensor for e in entries(owner or model)}
        return result, [held[name] for name in self.carried]

    def results(self, called) -> list[torch.Tensor]:
        return [t for _, t in self.outputs(called[0])] + called[1]

    def run(self, leaves: list, model=None) -> list[torch.Tensor]:
        model = model or self.model
        with torch.no_grad():
            return self.results(self.guarded("Model.forward", self.call, model, leaves))

    @contextlib.contextmanager
    def carrying(self, names: list[str]):
        """For a while, treat these state entries as arguments."""
        before, self.carried = self.carried, names
        try:
            yield
        finally:
            self.carried = before


def state_of(model: torch.nn.Module) -> list[tuple[str, torch.Tensor]]:
    return [(e.name, e.tensor) for e in entries(model)]
