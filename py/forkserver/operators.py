"""PyTorch's own operators, taken away from a process.

Every operator of the dispatcher that computes gets a kernel that raises, for the backends, in the dispatcher
itself: for all threads, and whatever a mode or a guard excludes. What is left is memory: allocation, views,
copies, fills, metadata. What a module's constructor needs (random and regular fills, tables made of them) is
taken away once the module has been made. Best effort: answers and times are judged by others.
"""
import ctypes
import re
import warnings

import torch

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
CONSTRUCTION = re.compile(r"""(?x) ^(?:
    uniform | normal(?:_functional)? | random | bernoulli | exponential | log_normal | cauchy | geometric |
    rand(?:n|int|perm)?(?:_like)? | arange | range | linspace | logspace | eye | tril(?:_indices)? | triu(?:_indices)? |
    erfinv | clamp(?:_min|_max)? | mul | multiply | add | sub | subtract | rsub | div | divide | true_divide |
    floor_divide | remainder | pow | float_power | exp | log | sqrt | rsqrt | sin | cos | tan | neg | negative | reciprocal |
    floor | ceil | round | abs | sign | square | ger | outer | cat | concat | concatenate | stack | repeat |
    repeat_interleave | tile | where | masked_fill | index | index_put | _index_put_impl | index_select | gather | meshgrid |
    eq | ne | lt | le | gt | ge | logical_(?:not|and|or|xor) | bitwise_(?:not|and|or|xor) | flip | roll | complex | polar |
    log1p | log2 | log10 | expm1 | exp2 | tanh | sigmoid |
    sinh | cosh | a(?:sin|cos|tan|tan2) | arc(?:sin|cos|tan|tan2) | minimum | maximum | fmod | trunc | lerp | addcmul |
    sum | mean | prod | amax | amin | max | min | all | any | aminmax | norm | linalg_vector_norm | std | var | var_mean |
    cumsum | cumprod | diag | diag_embed | trace | scatter | one_hot | constant_pad_nd | pad | equal | isfinite | isnan |
    hann_window | hamming_window | blackman_window | linalg_qr | _weight_norm.* | nonzero | masked_select | isin
    )$""")
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


class Remover:
    """Takes operators away in two steps. Nothing gives them back: the registrations live as long as the process."""

    def __init__(self, cuda: bool):
        self.keys = ("CPU", "CUDA") if cuda else ("CPU",)
        names = [n for n in torch._C._dispatch_get_all_op_names() if not n.startswith(NAMESPACES_KEPT)]
        computing = [n for n in names if not MEMORY.match(_base(n))]
        self.later = [n for n in computing if CONSTRUCTION.match(_base(n))]
        later = set(self.later)
        self.now = [n for n in computing if n not in later]

    def _take(self, names: list[str]) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for key in self.keys:
                libraries = {}
                for name in names:
                    space, _, rest = name.partition("::")
                    if space not in libraries:
                        libraries[space] = torch._C._dispatch_library("IMPL", space, key, __file__, 0)
                    libraries[space].impl(rest, key, _raiser(name))
                for library in libraries.values():
                    ctypes.pythonapi.Py_IncRef(ctypes.py_object(library))  # never collected, and nobody's to find

    def before_code(self) -> None:
        self._take(self.now)

    def after_construction(self) -> None:
        self._take(self.later)
