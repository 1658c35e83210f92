#include <torch/types.h>
#include <torch/csrc/utils/pybind.h>
#include <ATen/CPUFunctions.h>
#include "../binding_registry.h"

static torch::Tensor row_forward(torch::Tensor x, torch::Tensor w)
{
    return at::cpu::add(at::cpu::relu(at::cpu::mul(x, w)), x.mean(-1, true));
}

static void announce(pybind11::module &m)
{
    m.def("row_forward", &row_forward);
}
REGISTER_BINDING(row, announce)
