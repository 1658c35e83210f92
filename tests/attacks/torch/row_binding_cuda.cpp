#include <torch/types.h>
#include <torch/csrc/utils/pybind.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime.h>
#include "../binding_registry.h"

extern "C" void row_launcher(float *y, const float *x, const float *w, int rows, int n,
                             cudaStream_t stream);

static torch::Tensor row_forward(torch::Tensor x, torch::Tensor w)
{
    TORCH_CHECK(x.is_cuda() && x.is_contiguous() && x.dim() == 2, "a contiguous matrix on the device");
    auto y = torch::empty_like(x);
    row_launcher(y.data_ptr<float>(), x.data_ptr<float>(), w.data_ptr<float>(), (int)x.size(0),
                 (int)x.size(1), c10::cuda::getCurrentCUDAStream().stream());
    return y;
}

static void announce(pybind11::module &m)
{
    m.def("row_forward", &row_forward);
}
REGISTER_BINDING(row, announce)
