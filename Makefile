# Thin: CMake and Ninja build, tools/ does the rest. `make help` lists the targets.
HOME_DIR := $(or $(CUDA_AGENT_HOME),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/cuda-agent)
BIN := build/release/bin

.PHONY: all setup demo check check-gpu bench fuzz dist format clean help

all: setup ## build the release binaries (brings what is missing)
	@cmake --preset release >/dev/null
	@cmake --build --preset release
	@echo "built $(BIN)/cuda-agent; next: make demo, or $(BIN)/cuda-agent doctor"

setup: ## packages and a python with PyTorch, when they are not there
	@tools/setup.sh

demo: all ## optimise a bundled task with the built-in author
	@tools/demo.sh $(BIN)

check: ## all tests; ends with "N passed, N failed"
	@tools/setup.sh --tests
	@tools/check.sh

check-gpu: all ## the attack suite on this machine's GPU
	@cmake --build --preset release --target attacks mutants >/dev/null
	@tools/check_gpu.sh $(BIN)

bench: all ## a warm round beside the usual harness, and what box and call cost (on the GPU where there is one)
	@cmake --build --preset release --target bench_grade bench_overhead bench_rehearse >/dev/null
	@bench/grade.sh $(BIN) $(if $(wildcard /dev/nvidia0),cuda,cpu)

fuzz: ## every parser of foreign bytes for SECONDS_EACH (600); what reaches further is kept in tests/fuzz/corpus
	@tools/setup.sh --tests
	@tools/fuzz.sh $(or $(SECONDS_EACH),600) --keep

dist: all ## a tarball that runs without root: build/cuda-agent.tar.gz
	@tools/dist.sh $(BIN)

format: ## clang-format over all C and CUDA
	@git ls-files '*.c' '*.h' '*.cu' '*.cuh' | xargs clang-format -i

clean:
	rm -rf build

help:
	@sed -n 's/^\([a-z-]*\):.*## /  \1\t/p' $(MAKEFILE_LIST)
