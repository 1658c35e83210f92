#!/usr/bin/env bats
bats_require_minimum_version 1.5.0
# Published work folders: model_new.py, kernels with bindings, utils/ that ask the examiner.
load person

# torch's precompiled headers are kept: they cost half a minute.
setup() {
    agent=${BIN:?the folder of the binaries}/cuda-agent
    export PATH=$BIN:$PATH
    unset "${!CUDA_AGENT_T@}"
    cd "$BATS_TEST_TMPDIR" || return 1
}

# scale: a work folder `w` for y = x * s with a weight, its kernel in C++
scale() {
    cat >model.py <<'END'
import torch


class Model(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(n))
        self.register_buffer("seen", torch.zeros(n))

    def forward(self, pair, more, factor):
        self.seen = self.seen + pair[1]
        return {"a": pair[0] * self.weight, "b": (more["k"] * factor, self.seen * 2)}


def get_inputs():
    return [[torch.randn(64, 96), torch.randn(96)], {"k": torch.randn(33, 5)}, 3]


def get_init_inputs():
    return [96]
END
    "$agent" workdir model.py w --contract torch
    cat >w/model_new.py <<'END'
import torch

import cuda_extension


class ModelNew(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(n))
        self.register_buffer("seen", torch.zeros(n))

    def forward(self, pair, more, factor):
        self.seen = cuda_extension.add(self.seen, pair[1])
        return {"a": cuda_extension.scale(pair[0], self.weight),
                "b": (cuda_extension.times(more["k"], factor), cuda_extension.times(self.seen, 2.0))}
END
    cat >w/kernels/scale_binding.cpp <<'END'
#include <torch/types.h>
#include <torch/csrc/utils/pybind.h>
#include "../binding_registry.h"

static torch::Tensor scale(torch::Tensor x, torch::Tensor w)
{
    auto y = torch::empty_like(x);
    for (int64_t i = 0; i < x.numel(); i++)
        y.data_ptr<float>()[i] = x.data_ptr<float>()[i] * w.data_ptr<float>()[i % w.numel()];
    return y;
}

static torch::Tensor times(torch::Tensor x, double f)
{
    auto y = torch::empty_like(x);
    for (int64_t i = 0; i < x.numel(); i++)
        y.data_ptr<float>()[i] = x.data_ptr<float>()[i] * (float)f;
    return y;
}

static torch::Tensor add(torch::Tensor x, torch::Tensor w)
{
    auto y = torch::empty_like(x);
    for (int64_t i = 0; i < x.numel(); i++)
        y.data_ptr<float>()[i] = x.data_ptr<float>()[i] + w.data_ptr<float>()[i];
    return y;
}

static void announce(pybind11::module &m)
{
    m.def("scale", &scale);
    m.def("times", &times);
    m.def("add", &add);
}
REGISTER_BINDING(scale, announce);
END
}

@test "nests, scalars, weights and state that is carried; the folder's own commands" {
    scale
    run "$agent" verify w --target cpu
    is 0 "pass" "cpu torch candidate"
    cd w
    run bash utils/compile.sh --target cpu
    is 0 "pass"
    run "$CUDA_AGENT_PYTHON" -m utils.verification --target cpu
    is 0 "[PASS] verify success"
    sed -i 's/factor)/factor + 1)/; s/+ 1):/):/' model_new.py
    run "$CUDA_AGENT_PYTHON" -m utils.verification --target cpu
    is 1 "[FAIL] wrong: out.b.0 is wrong"
    PATH=/usr/bin:/bin run "$CUDA_AGENT_PYTHON" -m utils.verification --target cpu
    is 1 "no program 'cuda-agent'"
}

@test "graded to the end: the clock is calibrated for torch" {
    scale
    run "$agent" grade w --target cpu
    is 0 "undecided: right"
}

@test "a source that another includes is part of both" {
    scale
    echo 'static const float more = 0;' >w/kernels/more.c
    sed -i 's/^static torch::Tensor scale/#include "more.c"\n&/; s/\[i % w.numel()\];/[i % w.numel()] + more;/' w/kernels/scale_binding.cpp
    run "$agent" verify w --target cpu
    is 0 "pass"
    echo 'static const float more = 9;' >w/kernels/more.c
    run "$agent" verify w --target cpu
    is 1 "wrong: out.a is wrong"
}

@test "a build uses its own binding.cpp and registry" {
    scale
    chmod u+w w/binding.cpp w/binding_registry.h
    echo '#error not to be read' | tee w/binding.cpp >w/binding_registry.h
    run "$agent" compile w --target cpu
    is 0 "pass"
}

@test "state that the candidate does not keep is named" {
    scale
    sed -i 's/self.register_buffer("seen", torch.zeros(n))/pass/; s/self.seen = .*/pass/; s/self.seen, 2.0/pair[1], 2.0/' w/model_new.py
    run "$agent" verify w --target cpu
    is 1 "crashed" "seen"
}

@test "an unknown contract, a missing operand" {
    run "$agent" workdir model.py w --contract jax
    is 2 "jax" "native" "torch"
    run "$agent" workdir model.py
    is 2 "wants a task and a folder"
}
