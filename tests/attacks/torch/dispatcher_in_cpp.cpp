#include <torch/types.h>
#include <torch/csrc/utils/pybind.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include "../binding_registry.h"

static torch::Tensor row_forward(torch::Tensor x, torch::Tensor w)
{
    auto op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::mul", "Tensor");
    return op.typed<at::Tensor(const at::Tensor &, const at::Tensor &)>().call(x, w);
}

static void announce(pybind11::module &m)
{
    m.def("row_forward", &row_forward);
}
REGISTER_BINDING(row, announce)
