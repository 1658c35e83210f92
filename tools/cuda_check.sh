#!/usr/bin/env bash
# Every CUDA source of the repository compiles for the architectures that it may meet.
cd "$(dirname "$0")/.." || exit 2
nvcc=/usr/local/cuda/bin/nvcc
[ -x "$nvcc" ] || nvcc=$(command -v nvcc)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
bad=0
for f in $(git ls-files '*.cu'); do
    [[ $f == *does_not_compile* ]] && continue
    "$nvcc" -std=c++17 -O1 -gencode=arch=compute_90a,code=sm_90a -Xcompiler -fPIC -Iinclude -c "$f" -o "$out/x.o" || { echo "FAIL $f"; bad=1; }
done
exit $bad
