#!/usr/bin/env bash
# Every CUDA source of the repository compiles for the architectures that it may meet; two at a time. The skill's recipes: skill_check.sh.
cd "$(dirname "$0")/.." || exit 2
nvcc=/usr/local/cuda/bin/nvcc
[ -x "$nvcc" ] || nvcc=$(command -v nvcc)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
export nvcc out
one() {
    "$nvcc" -std=c++17 -O1 -gencode=arch=compute_90a,code=sm_90a -Xcompiler -fPIC -Iinclude -c "$1" -o "$out/$$.o" || { echo "FAIL $1"; exit 1; }
}
export -f one
git ls-files '*.cu' | grep -vE 'does_not_compile|^skills/' | xargs -P 2 -I {} bash -c 'one {}'
