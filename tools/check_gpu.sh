#!/usr/bin/env bash
# What needs a GPU: memory shared across processes, the attack suite, a task check. usage: tools/check_gpu.sh BIN_DIR
set -u
cd "$(dirname "$0")/.."
python=$(tools/python.sh) || exit 2
bin=$1 passed=0 failed=0

counted() { # COMMAND...: ends with its own counts
    local out line
    out=$("$@" 2>&1)
    echo "$out"
    line=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' <<<"$out" | tail -n 1)
    line=${line:-0 passed, 1 failed}
    passed=$((passed + ${line%% *})) failed=$((failed + $(sed -n 's/.*passed, \([0-9]*\) failed/\1/p' <<<"$line")))
}

rows() { # FOLDER verify|time [TASK]: of tests/attacks
    counted "$bin/attacks" cuda "$python" "tests/attacks/${3:-task_cuda}.py" "tests/attacks/$1" "$2" ${TABLE:+--table "$TABLE"}
}

rows cuda verify
rows cuda_timed time
rows cuda_small time task_cuda_small
rows torch verify
counted "$bin/mutants" cuda "$python" tests/mutants --count 100 --honest 40
for pair in linear_sum:0; do
    "$bin/cuda-agent" grade "examples/candidates/cuda/${pair%%:*}" --target cuda
    if [ $? = "${pair##*:}" ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
