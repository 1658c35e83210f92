"""Ways past the dispatcher, closed before a candidate's code is read.

Compilers and interpreters of PyTorch's own hold operators that no dispatcher is asked for, and a handle of a
kernel goes on with what it was given; they are taken out of torch._C, functions and types alike. Libraries
come in through the interpreter, which asks an audit hook; hooks cannot be taken back.
"""
import re
import sys
import sysconfig
import types

import torch

from .operators import Removed

# Other packages that compute would be a second library of operators.
NOT_HERE = ("numpy", "scipy", "numba", "cupy", "triton", "jax", "tensorflow", "pandas", "sklearn")
PAST_THE_DISPATCHER = re.compile(r"""(?x) ^(?:
    _dispatch_get_computed_kernel.* | _jit_script_(?:compile|class|interface).* | _create_(?:function|graph|method).* |
    import_ir_module.* | _import_ir_module.* | _load_(?:jit|mobile|for_lite).* | _jit_to_.* | _fuse_to_.* |
    _jit_interpret_graph | _jit_(?:set|override)_.* | _jit_trace.* | parse_ir | CompilationUnit | StaticModule |
    LiteScriptModule | _te | _lazy | _lazy_ts_backend | _aoti
    )$""")
FUSERS = ("_jit_set_texpr_fuser_enabled", "_jit_override_can_fuse_on_cpu", "_jit_override_can_fuse_on_gpu",
          "_jit_set_llga_enabled")


class NotHere(Removed, ModuleNotFoundError):
    """An import of what computes: who can do without it may catch it as any other."""


def _remove(owner, name: str) -> None:
    """Types lose what makes and calls their objects, modules all that they have."""
    thing = getattr(owner, name)
    if isinstance(thing, type):
        def removed(*args, **kw):
            raise Removed(f"torch._C.{name} computes past the dispatcher: this contract wants a kernel")
        for method in ("__init__", "__call__", "define"):
            setattr(thing, method, removed)
    elif isinstance(thing, types.ModuleType):
        for inner in dir(thing):
            if not inner.startswith("__"):
                _remove(thing, inner)
    else:
        def removed(*args, **kw):
            raise Removed(f"torch._C.{name} computes past the dispatcher: this contract wants a kernel")
        setattr(owner, name, removed)


def _refusals(extension: str, refused: type, elsewhere: type, folders: tuple):
    """The audit hook. It keeps what it needs to itself: names of a module can be set to others."""
    once = [extension]

    def loads(name, *_):
        if name != (once.pop() if once else ""):
            raise refused(f"ctypes loads '{name}': a candidate's libraries are those that it was linked with")

    def resolves(_, name):
        if not str(name).startswith(("ca_model_new", "torch_memory_")):
            raise refused(f"ctypes looks for '{name}': a candidate's native code is in kernels/")

    def imports(module, path, *_):
        if module.partition(".")[0] in NOT_HERE_NAMES:
            raise elsewhere(f"{module} computes: this contract wants a kernel")
        if path is not None and path != extension and not path.startswith(folders):
            raise refused(f"'{path}' is a library that is not of this Python's")

    def searches(*_):
        raise refused("gc lists what is not the candidate's")

    NOT_HERE_NAMES = frozenset(NOT_HERE)
    rules = {"ctypes.dlopen": loads, "ctypes.dlsym": resolves, "import": imports,
             "gc.get_objects": searches, "gc.get_referrers": searches}

    def hook(event, args, find=rules.get):
        rule = find(event)
        if rule is not None:
            rule(*args)
    return hook


def close(extension: str) -> None:
    """extension: the path of the candidate's own, which may be opened once."""
    for switch in FUSERS:
        getattr(torch._C, switch)(False)
    for name in filter(PAST_THE_DISPATCHER.match, dir(torch._C)):
        _remove(torch._C, name)
    for name in NOT_HERE:
        sys.modules.pop(name, None)
    paths = sysconfig.get_paths()
    folders = tuple(paths[k].rstrip("/") + "/" for k in ("stdlib", "platstdlib", "purelib", "platlib"))
    sys.addaudithook(_refusals(extension, Removed, NotHere, folders))
