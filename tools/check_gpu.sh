#!/usr/bin/env bash
# What needs a GPU: memory shared across processes, the exam's rows, a task check. usage: tools/check_gpu.sh BIN_DIR
set -u
cd "$(dirname "$0")/.."
python=$(tools/python.sh) || exit 2
bin=$1 passed=0 failed=0

rows() { # FOLDER verify|time: of tests/exam
    local out line
    out=$("$bin/exam_rows" cuda "$python" tests/exam/task_cuda.py "tests/exam/$1" "$2" 2>&1)
    echo "$out"
    line=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' <<<"$out" | tail -n 1)
    line=${line:-0 passed, 1 failed}
    passed=$((passed + ${line%% *})) failed=$((failed + $(sed -n 's/.*passed, \([0-9]*\) failed/\1/p' <<<"$line")))
}

rows cuda verify
rows cuda_timed time
for pair in linear_sum:0; do
    "$bin/cuda-agent" grade "examples/candidates/cuda/${pair%%:*}" --target cuda
    if [ $? = "${pair##*:}" ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
