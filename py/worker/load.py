"""A task file becomes a model, example inputs and a signature."""
import importlib.util
import inspect
import math
import pathlib
import random
import sys
import traceback

import torch

from .protocol import Refusal
from .tree import flatten, map_tensors, rebuild

DTYPES = {
    torch.float32: "f32", torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16",
    torch.float8_e4m3fn: "e4m3", torch.float8_e5m2: "e5m2", torch.int8: "i8", torch.uint8: "u8",
    torch.int16: "i16", torch.int32: "i32", torch.int64: "i64", torch.bool: "bool",
    torch.complex64: "c64", torch.complex128: "c128",
}
RANK_MAX = 8


def seed_all(seed: int) -> None:
    torch.manual_seed(seed)
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed & 0xFFFFFFFF)


def span_bytes(t: torch.Tensor) -> int:
    """Bytes of storage that the strides span."""
    if t.numel() == 0:
        return 0
    return (sum((n - 1) * s for n, s in zip(t.shape, t.stride())) + 1) * t.element_size()


def describe(name: str, leaf, alias: int = -1) -> dict:
    """One `value` of docs/worker.md."""
    v = {"name": name, "kind": "none", "dtype": "f32", "shape": [], "stride": [], "alias": -1,
         "bytes": 0, "i": 0, "r": 0.0, "text": ""}
    if isinstance(leaf, torch.Tensor):
        if leaf.layout != torch.strided:
            raise Refusal("task", f"'{name}' is a sparse tensor: not native")
        if leaf.dtype not in DTYPES:
            raise Refusal("task", f"'{name}' has dtype {leaf.dtype}: not native")
        if leaf.dim() > RANK_MAX:
            raise Refusal("task", f"'{name}' has {leaf.dim()} dimensions, the contract takes {RANK_MAX}")
        v.update(kind="tensor", dtype=DTYPES[leaf.dtype], shape=list(leaf.shape), stride=list(leaf.stride()),
                 alias=alias, bytes=span_bytes(leaf))
    elif isinstance(leaf, bool):
        v.update(kind="flag", i=int(leaf))
    elif isinstance(leaf, int):
        v.update(kind="int", i=leaf)
    elif isinstance(leaf, float):
        v.update(kind="real", r=leaf if math.isfinite(leaf) else str(leaf))  # JSON has no inf
    elif isinstance(leaf, str):
        v.update(kind="text", text=leaf)
    elif leaf is not None:
        raise Refusal("task", f"'{name}' is a {type(leaf).__name__}: not native")
    return v


def last_line(path: str) -> str:
    """Where in the task file the exception came from."""
    frames = [f for f in traceback.extract_tb(sys.exc_info()[2]) if f.filename == path]
    return f" (line {frames[-1].lineno})" if frames else ""


class Task:
    """The loaded file: `model` in eval mode on `device`, example arguments, flat views of both."""

    def __init__(self, name: str, source: str, device: torch.device, folder: str):
        self.name, self.device = name, device
        self.path = str(pathlib.Path(folder) / f"{''.join(c if c.isalnum() else '_' for c in name)}_task.py")
        pathlib.Path(self.path).write_text(source)
        self.module = self._import()
        self.init_nest = self._call("get_init_inputs", self.module.get_init_inputs) \
            if hasattr(self.module, "get_init_inputs") else []
        self.model = self.construct(1).to(device).eval()
        self.example = map_tensors(self.raw_inputs(1), lambda t: t.to(device))
        self.arg_names = self._argument_names()

    def _import(self):
        try:
            spec = importlib.util.spec_from_file_location("task_module", self.path)
            module = importlib.util.module_from_spec(spec)
            sys.modules["task_module"] = module
            spec.loader.exec_module(module)
        except SyntaxError as e:
            raise Refusal("task", f"syntax error in the task file, line {e.lineno}: {e.msg}") from e
        except (Exception, SystemExit) as e:
            raise Refusal("task", f"the task file raised {type(e).__name__}: {e}{last_line(self.path)}") from e
        for wanted in ("Model", "get_inputs"):
            if not hasattr(module, wanted):
                raise Refusal("task", f"the task file has no {wanted}",
                              "it needs class Model(nn.Module), get_inputs() and get_init_inputs()")
        return module

    def _call(self, what: str, function, *args, **kw):
        try:
            return function(*args, **kw)
        except torch.OutOfMemoryError as e:
            raise Refusal("machine", f"{what}: not enough device memory: {str(e).splitlines()[0]}") from e
        except (Exception, SystemExit) as e:
            text = (str(e).splitlines() or [""])[0][:300]
            raise Refusal("task", f"{what} raised {type(e).__name__}: {text}{last_line(self.path)}") from e

    def construct(self, seed: int) -> torch.nn.Module:
        """Model(*init), or Model(*positional, **keywords) for the [positional, {keywords}] form."""
        seed_all(seed)
        init = self.init_nest
        if isinstance(init, dict):
            return self._call("Model(...)", self.module.Model, **init)
        init = list(init) if isinstance(init, (list, tuple)) else [init]
        if len(init) == 2 and isinstance(init[0], (list, tuple)) and isinstance(init[1], dict):
            try:
                inspect.signature(self.module.Model.__init__).bind(None, *init)
            except TypeError:
                return self._call("Model(...)", self.module.Model, *init[0], **init[1])
            if all(isinstance(k, str) for k in init[1]) and not init[0]:
                return self._call("Model(...)", self.module.Model, **init[1])
        return self._call("Model(...)", self.module.Model, *init)

    def raw_inputs(self, seed: int):
        """get_inputs() under a seed, as the file makes them (on the host)."""
        seed_all(seed)
        return self._call("get_inputs()", self.module.get_inputs)

    def _argument_names(self) -> list[str]:
        if isinstance(self.example, dict):
            return list(self.example)
        n = len(self.example) if isinstance(self.example, (list, tuple)) else 1
        names, rest = [], None
        for p in inspect.signature(self.model.forward).parameters.values():
            if p.kind == p.VAR_POSITIONAL:
                rest = p.name
            elif p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
                names.append(p.name)
        return [names[i] if i < len(names) else f"{rest or 'arg'}.{i - len(names)}" for i in range(n)]

    def leaves(self, nest) -> list[tuple[str, object]]:
        if isinstance(nest, dict):
            return [leaf for k, v in nest.items() for leaf in flatten(v, k)]
        items = nest if isinstance(nest, (list, tuple)) else [nest]
        return [leaf for name, v in zip(self.arg_names, items) for leaf in flatten(v, name)]

    def nest(self, leaves: list):
        return rebuild(self.example, iter(leaves))

    def forward(self, model, nest):
        if isinstance(nest, dict):
            return model(**nest)
        return model(*nest) if isinstance(nest, (list, tuple)) else model(nest)

    def outputs(self, result) -> list[tuple[str, torch.Tensor]]:
        leaves = flatten(result, "out")
        for name, leaf in leaves:
            if not isinstance(leaf, torch.Tensor):
                raise Refusal("task", f"output '{name}' is a {type(leaf).__name__}, not a tensor: not native")
        if not leaves:
            raise Refusal("task", "forward returned nothing")
        return leaves

    def run_eager(self, nest) -> list[torch.Tensor]:
        with torch.no_grad():
            return [t for _, t in self.outputs(self._call("Model.forward", self.forward, self.model, nest))]


def state_of(model: torch.nn.Module) -> list[tuple[str, torch.Tensor]]:
    """state_dict's entries, then buffers and plain tensor attributes that it leaves out, as attr:path."""
    found = list(model.state_dict(keep_vars=True).items())
    names = {n for n, _ in found}
    found += [(f"attr:{n}", b) for n, b in model.named_buffers(remove_duplicate=False) if n not in names]
    for path, module in model.named_modules():
        for key, v in vars(module).items():
            if isinstance(v, torch.Tensor):
                found.append((f"attr:{path}.{key}" if path else f"attr:{key}", v))
    return [(n, t.data if isinstance(t, torch.nn.Parameter) else t) for n, t in found]


def storage_key(t: torch.Tensor) -> tuple:
    return (t.untyped_storage().data_ptr(), t.storage_offset(), tuple(t.shape), tuple(t.stride()))


def aliases(named: list[tuple[str, torch.Tensor]]) -> list[int]:
    """For each entry the first earlier entry with the same storage, or -1."""
    first, out = {}, []
    for i, (_, t) in enumerate(named):
        key = storage_key(t)
        out.append(first.get(key, -1) if t.numel() else -1)
        first.setdefault(key, i)
    return out
