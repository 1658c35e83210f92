"""PyTorch's own operators, taken away from a process.

Every operator of the dispatcher that computes gets a kernel that raises, for each backend, in the dispatcher
itself: for all threads, and whatever a mode or a guard excludes. What is left is memory: allocation, views,
copies, fills, metadata.

A module's constructor may call all of them, on the host: values come later, and every name, handle or thread
that it keeps goes through the dispatcher when it is used. What would not is gone before (doors.py), and so are
a device's kernels, which a graph could keep: there constructors compute on the host, too. Best effort: answers
and times are judged by others.
"""
import ctypes
import re
import warnings

import torch
from torch.utils._pytree import tree_leaves, tree_map

# Base names, without namespace, overload and a last underscore.
MEMORY = re.compile(r"""(?x) ^(?:
    (?:new_)?empty.* | (?:new_)?(?:zeros|ones|full)(?:_like)? | scalar_tensor | fill | zero | _efficientzerotensor |
    view | view_as.* | _unsafe_view | _reshape.* | reshape(?:_as)? | as_strided(?:_scatter)? | expand(?:_as)? | permute |
    transpose | t | mT | mH | adjoint | numpy_T | matrix_H | swapaxes | swapdims | movedim | moveaxis | select | slice |
    narrow | squeeze | unsqueeze | unbind | split.* | unsafe_split.* | tensor_split | [hvd]split | chunk | unsafe_chunk |
    diagonal | unfold | unflatten(?:_dense_tensors)? | flatten(?:_dense_tensors)? | ravel | real | imag | alias | detach |
    .*_copy_to_self | lift.* | data | set | set_data | resize.* | _resize.* | contiguous | clone | copy | _to_copy | to |
    _to_dtype.* | type_as | _copy_from.* | cpu | cuda | pin_memory | _pin_memory | is_pinned | record_stream |
    resolve_conj | resolve_neg | _conj.* | _neg_view | conj | is_.* | size | stride | numel | dim | sym_.* | storage_offset |
    item | _local_scalar_dense | _is_all_true | requires_grad | _version | retain_grad | output_nr | _fw_primal | is_leaf |
    _has_.* | _is_zerotensor | _debug_has_internal_overlap | has_names | names | rename | result_type | can_cast |
    promote_types | _use_cudnn_.* | _cudnn_rnn_flatten_weight | cudnn_is_acceptable | _has_same_storage_numel |
    _nested_.*storage.* | _assert.* | sym_constrain_range.* | _functional_assert.* | _print | profiler.* | _record_function.*
    )$""")
LAYOUTS = ("Sparse", "SparseCsr", "Quantized", "NestedTensor")  # each with kernels of its own
# Kernels for whatever backend has none of its own: a handle could name one that is not here.
COMPOSITE = ("CompositeImplicitAutograd", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional",
             "CompositeImplicitAutogradNestedTensor")
NAMESPACES_KEPT = ("prim", "profiler", "c10d", "_c10d_functional", "c10d_functional")


class Removed(RuntimeError):
    """forward asked for one of PyTorch's own operators."""


def _base(name: str) -> str:
    base = name.partition("::")[2].partition(".")[0]
    return base[:-1] if base.endswith("_") and not base.endswith("__") else base


def _raiser(name: str):
    def removed(*args, **kw):
        raise Removed(f"{name} is PyTorch's own operator: this contract wants a kernel")
    return removed


def _overload(name: str):
    space, _, rest = name.partition("::")
    base, _, overload = rest.partition(".")
    return getattr(getattr(getattr(torch.ops, space), base), overload or "default")


def _computes_on_host(name: str):
    """A kernel for a device that no graph can keep: the host computes, and only bytes go over."""
    def computed(*args, **kw):
        op = _overload(name)
        host: dict[int, tuple] = {}  # by identity: the device's tensor and its copy
        place = kw.get("device")

        def down(x):
            nonlocal place
            if isinstance(x, torch.Tensor) and x.is_cuda:
                place = x.device
                return host.setdefault(id(x), (x, x.cpu()))[1]
            return None if isinstance(x, torch.Generator) else x

        def up(x):
            return x.to(place) if isinstance(x, torch.Tensor) and place is not None else x

        down_args, down_kw = tree_map(down, args), tree_map(down, kw)
        if "device" in kw:
            down_kw["device"] = torch.device("cpu")
        result = op(*down_args, **down_kw)
        written = [args[i] if i < len(args) else kw.get(a.name) for i, a in enumerate(op._schema.arguments)
                   if a.alias_info is not None and a.alias_info.is_write]
        same = {}
        for x in tree_leaves(written):
            if id(x) in host:
                copy = host[id(x)][1]
                x.resize_(copy.shape).copy_(copy)
                same[id(copy)] = x
        return tree_map(lambda r: same[id(r)] if id(r) in same else up(r), result)
    return computed


def _register(names: list[str], key: str, kernel_of) -> None:
    libraries = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            space, _, rest = name.partition("::")
            if space not in libraries:
                libraries[space] = torch._C._dispatch_library("IMPL", space, key, __file__, 0)
            libraries[space].impl(rest, key, kernel_of(name))
    for library in libraries.values():
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(library))  # never collected, and nobody's to find


class Remover:
    """Takes operators away. Nothing gives them back: the registrations live as long as the process."""

    def __init__(self, cuda: bool):
        names = [n for n in torch._C._dispatch_get_all_op_names() if not n.startswith(NAMESPACES_KEPT)]
        self.computing = [n for n in names if not MEMORY.match(_base(n))]
        self.devices = ("CPU", "CUDA") if cuda else ("CPU",)
        for key in ["MkldnnCPU"] + [layout + device for layout in LAYOUTS for device in self.devices]:
            _register(self.computing, key, _raiser)
        if cuda:
            _register(self.computing, "CUDA", _computes_on_host)

    def after_construction(self) -> None:
        """Meta tensors do not compute from here on, either."""
        for key in COMPOSITE:
            has = torch._C._dispatch_has_kernel_for_dispatch_key
            _register([n for n in self.computing if has(n, key)], key, _raiser)
        for device in self.devices:
            _register(self.computing, device, _raiser)
