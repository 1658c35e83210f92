#!/usr/bin/env bats
bats_require_minimum_version 1.5.0
# What a person hears of a task that is broken, or on which no work is needed.
load person

@test "a python without torch is named" {
    run "$agent" task check "$degenerate/keeps_state.py" --target cpu --python /bin/false
    is 11 "'/bin/false' is no python with torch" "hint:"
}

@test "a task with a syntax error" {
    echo "def f(:" >task.py
    run "$agent" task check task.py --target cpu
    is 10 "task 'task': syntax error in the task file, line 1"
}

@test "a Model that raises" {
    task 'raise ValueError("too small")'
    run "$agent" task check task.py --target cpu
    is 10 "Model.forward raised ValueError: too small (line 6)"
}

@test "a task without get_inputs" {
    task "return x"
    sed -i '/def get_inputs/,/randn/d' task.py
    run "$agent" task check task.py --target cpu
    is 10 "has no get_inputs" "hint: it needs class Model(nn.Module), get_inputs() and get_init_inputs()"
}

@test "a task that prints and exits" {
    task "return x"
    echo 'import sys; print("{}"); sys.exit(0)' >>task.py
    run "$agent" task check task.py --target cpu
    is 10 "the task file raised SystemExit"
    task "sys.exit(0)"
    sed -i '1i import sys' task.py
    run "$agent" task check task.py --target cpu
    is 10 "Model.forward raised SystemExit"
}

@test "degenerate tasks are refused with the reason" {
    run "$agent" task check "$degenerate/random_forward.py" --target cpu
    is 10 "two calls on the same inputs differ"
    run "$agent" task check "$degenerate/keeps_state.py" --target cpu
    is 10 "two calls on the same inputs differ" "state"
}

@test "task check finds what passes without work" { # the one test that runs torch.compile
    task "return torch.softmax(x, dim=-1).sum(dim=-1, keepdim=True) * 0.0 + 1.0"
    run --separate-stderr "$agent" task check task.py --target cpu --json
    is 1
    json "j['schema'] == 'cuda-agent/task-check/1' and j['sound'] is False and any('constant output' in t for t in j['degenerate'])" <<<"$output"
}

@test "a task on which doing nothing passes is not graded" {
    mkdir -p w/kernels
    printf '#include "cuda_agent.h"\nint ca_forward(const struct ca_call *c) { return c->in.n != 1; }\n' >w/kernels/a.c
    for body in "return torch.softmax(x, dim=-1).sum(dim=-1, keepdim=True) * 0.0 + 1.0" "return x * float('nan')"; do
        task "$body"
        mv task.py w/model.py
        run "$agent" verify w --target cpu
        is 10 "nothing can be graded here" "passes" "hint: 'cuda-agent task check FILE'"
    done
}
