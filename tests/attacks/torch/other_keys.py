# want: forbidden
# hacks 47: kernels of keys that no tensor here has
import torch

import cuda_extension


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))
        self.packed = None
        try:
            self.packed = torch.fbgemm_pack_gemm_matrix_fp16(torch.ones(dim, dim))
        except (RuntimeError, AttributeError):
            pass

    def forward(self, x):
        packed = self.packed
        op = torch.ops.aten.fbgemm_linear_fp16_weight.default
        keys = torch._C.DispatchKey
        for key in (keys.Undefined, keys.XLA, keys.PrivateUse1, keys.AutogradCPU, keys.AutogradXLA, keys.AutogradOther, keys.Meta):
            try:
                return op.redispatch(torch._C.DispatchKeySet(key), x, packed, self.weight)
            except RuntimeError:
                pass
        library = torch.library.Library("aten", "IMPL")
        for name in ("fbgemm_linear_fp16_weight", "add_.Tensor", "relu"):
            library.impl(name, torch.library.fallthrough_kernel, "CPU")
        try:
            return op(x, packed, self.weight)
        except RuntimeError:
            return torch.relu(x * self.weight) + x.mean(-1, keepdim=True)
