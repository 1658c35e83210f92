/* Every *_binding.cpp of kernels/ announces its functions here, and binding.cpp makes one module of
 * them:
 *
 *     #include "../binding_registry.h"
 *     static void announce(pybind11::module &m) { m.def("scale_forward", &scale_forward); }
 *     REGISTER_BINDING(scale, announce)
 *
 * Frozen: a build uses its own copy. SPDX-License-Identifier: Apache-2.0
 */
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

class __attribute__((visibility("hidden"))) BindingRegistry
{
  public:
    using BindingFunction = std::function<void(pybind11::module &)>;

    static BindingRegistry &getInstance()
    {
        static BindingRegistry registry;
        return registry;
    }

    void registerBinding(const std::string &name, BindingFunction announce)
    {
        announced.emplace_back(name, std::move(announce));
    }

    void applyBindings(pybind11::module &m)
    {
        for (auto &each : announced)
            each.second(m);
    }

  private:
    BindingRegistry() = default;
    std::vector<std::pair<std::string, BindingFunction>> announced;
};

struct __attribute__((visibility("hidden"))) BindingRegistrar {
    BindingRegistrar(const std::string &name, BindingRegistry::BindingFunction announce)
    {
        BindingRegistry::getInstance().registerBinding(name, std::move(announce));
    }
};

#define REGISTER_BINDING(name, announce) \
    static BindingRegistrar registrar_of_##name(#name, [](pybind11::module &m) { announce(m); });
