#include <torch/types.h>
#include <torch/csrc/utils/pybind.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime.h>
#include "../binding_registry.h"

extern "C" void scale_gelu_launcher(float *y, const float *x, const float *w, const float *b,
                                    long rows, int dim, cudaStream_t stream);

static torch::Tensor scale_gelu(torch::Tensor x, torch::Tensor w, torch::Tensor b)
{
    TORCH_CHECK(x.is_cuda() && x.is_contiguous() && x.dim() == 2 && x.size(1) % 4 == 0,
                "a contiguous matrix on the device, rows of whole float4");
    auto y = torch::empty_like(x);
    scale_gelu_launcher(y.data_ptr<float>(), x.data_ptr<float>(), w.data_ptr<float>(),
                        b.data_ptr<float>(), x.size(0), (int)x.size(1),
                        c10::cuda::getCurrentCUDAStream().stream());
    return y;
}

static void announce(pybind11::module &m)
{
    m.def("scale_gelu", &scale_gelu, pybind11::arg("x"), pybind11::arg("weight"),
          pybind11::arg("bias"));
}
REGISTER_BINDING(scale_gelu, announce);
