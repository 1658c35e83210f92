// A native candidate as a torch operator: what a harness that loads extensions into Python compiles each time.
// SPDX-License-Identifier: Apache-2.0
#include <torch/torch.h>
#include <torch/library.h>
#ifdef COLD_CUDA
#include <ATen/cuda/CUDAContext.h>
#endif

#include <vector>

#include "cuda_agent.h"

namespace {

using Tensors = std::vector<at::Tensor>;

ca_dtype dtype_of(const at::Tensor &t)
{
    switch (t.scalar_type()) {
    case at::kFloat:
        return CA_F32;
    case at::kHalf:
        return CA_F16;
    case at::kBFloat16:
        return CA_BF16;
    case at::kLong:
        return CA_I64;
    case at::kInt:
        return CA_I32;
    case at::kBool:
        return CA_BOOL;
    default:
        TORCH_CHECK(false, "no dtype for ", t.scalar_type());
    }
}

std::vector<ca_value> values(const Tensors &tensors)
{
    std::vector<ca_value> out;
    for (const at::Tensor &t : tensors) {
        ca_value v = {};
        v.name = "";
        v.kind = CA_TENSOR;
        v.dtype = dtype_of(t);
        v.rank = (int)t.dim();
        v.alias = -1;
        v.shape = t.sizes().data();
        v.stride = t.strides().data();
        v.data = t.data_ptr();
        out.push_back(v);
    }
    return out;
}

struct Prepared {
    at::Tensor keep, scratch;
    void *state = nullptr;
} prepared;

struct Call {
    std::vector<ca_value> in, param, out;
    ca_call call = {};

    Call(const Tensors &i, const Tensors &p, const Tensors &o) : in(values(i)), param(values(p)), out(values(o))
    {
        call.version = 1;
        call.threads = at::get_num_threads();
        call.in = { (int)in.size(), in.data() };
        call.param = { (int)param.size(), param.data() };
        call.out = { (int)out.size(), out.data() };
#ifdef COLD_CUDA
        call.stream = at::cuda::getCurrentCUDAStream().stream();
        call.sm_count = at::cuda::getCurrentDeviceProperties()->multiProcessorCount;
#endif
        call.keep = prepared.keep.defined() ? prepared.keep.data_ptr() : nullptr;
        call.scratch = prepared.scratch.defined() ? prepared.scratch.data_ptr() : nullptr;
        call.state = prepared.state;
    }
};

extern "C" {
__attribute__((weak)) size_t ca_keep(const struct ca_call *);
__attribute__((weak)) size_t ca_scratch(const struct ca_call *);
__attribute__((weak)) int ca_setup(const struct ca_call *, void **);
}

at::Tensor room(size_t bytes, const at::Tensor &like)
{
    return at::empty({ (int64_t)bytes + 1 }, like.options().dtype(at::kByte));
}

void setup(Tensors in, Tensors param, Tensors out)
{
    Call bare(in, param, out);
    if (ca_keep)
        prepared.keep = room(ca_keep(&bare.call), out[0]);
    if (ca_scratch)
        prepared.scratch = room(ca_scratch(&bare.call), out[0]);
    Call c(in, param, out);
    TORCH_CHECK(!ca_setup || ca_setup(&c.call, &prepared.state) == 0, "ca_setup failed");
}

void forward(Tensors in, Tensors param, Tensors out)
{
    Call c(in, param, out);
    TORCH_CHECK(ca_forward(&c.call) == 0, "ca_forward failed");
}

} // namespace

TORCH_LIBRARY(cold, m)
{
    m.def("setup(Tensor[] input, Tensor[] param, Tensor[] out) -> ()", &setup);
    m.def("forward(Tensor[] input, Tensor[] param, Tensor[] out) -> ()", &forward);
}
