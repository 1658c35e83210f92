#!/bin/sh
# Does the candidate of this work folder build? usage: bash utils/compile.sh [options of cuda-agent compile]. Frozen.
here=$(cd "$(dirname "$0")/.." && pwd) || exit 1
exec "${CUDA_AGENT:-cuda-agent}" compile "$here" "$@"
