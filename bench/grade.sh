#!/usr/bin/env bash
# One warm round of the exam beside the usual harness on the same candidate.
# usage: bench/grade.sh BIN_DIR [cpu|cuda] [WORKDIR]
set -eu
cd "$(dirname "$0")/.."
bin=$1 target=${2:-cpu}
work=${3:-examples/candidates/$target/linear_sum}
python=$(tools/python.sh)
echo "candidate: $work, target $target, $(date -u +%F)"
"$bin/bench_grade" "$target" "$python" "$work"
echo
echo "the usual harness (bench/cold.py):"
"$python" bench/cold.py "$target" "$work"
echo
"$bin/bench_overhead" "$python" tests/attacks/task.py
