#!/usr/bin/env bash
# clang-format agrees with every C, C++ and CUDA file of the repository.
cd "$(dirname "$0")/.." || exit 2
git ls-files '*.c' '*.h' '*.cu' '*.cuh' | xargs clang-format --dry-run -Werror
