#!/usr/bin/env bash
# Optimise one bundled task with the built-in author: on the GPU where there is one, else on the CPU.
# usage: tools/demo.sh BIN_DIR
set -eu
cd "$(dirname "$0")/.."
target=cpu
[ -e /dev/nvidiactl ] && [ -e /dev/nvidia0 ] && target=cuda
out=$(mktemp -d "${TMPDIR:-/tmp}/cuda-agent-demo.XXXX") # a new one each time: an old log would answer
echo "task: examples/tasks/$target/row_softmax.py, target $target"
status=0
"$1/cuda-agent" optimize "examples/tasks/$target/row_softmax.py" --target "$target" --seconds 60 --out "$out" || status=$?
[ "$status" -le 1 ] || exit "$status"
[ "$status" = 0 ] || echo "the exam works; on this machine nothing was faster than PyTorch's best by more than 5%"
echo "the verified kernel: $out/best/kernels; grade it again: $1/cuda-agent grade $out/best --target $target"
