#!/usr/bin/env bash
# Every recipe of the skill builds as the candidate that it is: each is compiled and linked alone, with the flags of docs/header.md,
# and exports ca_forward. Ends with `N passed, N failed`. usage: tools/skill_check.sh [FILE.cu...]
cd "$(dirname "$0")/.." || exit 2
nvcc=/usr/local/cuda/bin/nvcc
[ -x "$nvcc" ] || nvcc=$(command -v nvcc) || { echo "no nvcc here"; echo "0 passed, 1 failed"; exit 1; }
passed=0 failed=0
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
[ $# -gt 0 ] || set -- skills/fast-cuda-kernels/references/recipes/*.cu
for f; do
    libs=()
    grep -q cublas "$f" && libs=(-lcublasLt -lcublas)
    "$nvcc" -std=c++17 -O3 -gencode=arch=compute_90a,code=sm_90a -cudart=shared -Xcompiler=-fPIC,-Wall -t0 -Werror=all-warnings \
        -Iinclude "$f" -shared "${libs[@]}" -lm -o "$out/candidate.so" && nm -D "$out/candidate.so" | grep -q ' T ca_forward$' &&
        { passed=$((passed + 1)); echo "ok $f"; } || { failed=$((failed + 1)); echo "FAIL $f"; }
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
