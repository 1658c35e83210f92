/* The module cuda_extension: all that kernels/ *_binding.cpp registered.
 * Frozen: a build uses its own copy. SPDX-License-Identifier: Apache-2.0
 */
#include "binding_registry.h"

PYBIND11_MODULE(cuda_extension, m)
{
    BindingRegistry::getInstance().applyBindings(m);
}
