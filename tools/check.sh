#!/usr/bin/env bash
# All checks, one line a step, and at the end the plain line `N passed, N failed`.
#
# Once the release build is there the rest goes on in lanes, side by side: many steps wait (for a hang's end, for clocks, for
# Python's start) while others compute. A lane's steps run one after the other and share a home; its lines are
# shown together, always in the same order. The seconds of a step are those beside the others.
set -u
cd "$(dirname "$0")/.."
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
trap 'trap "" TERM; kill -TERM 0; exit 130' INT # lanes do not hear of it
passed=0 failed=0
log=$room/log

# step NAME COMMAND...: one check; its output is shown when it fails.
step() {
    local name=$1 start=$SECONDS
    shift
    if "$@" >"$log" 2>&1; then
        passed=$((passed + 1))
        printf 'ok    %-34s %4d s\n' "$name" $((SECONDS - start))
    else
        failed=$((failed + 1))
        printf 'FAIL  %-34s %4d s\n' "$name" $((SECONDS - start))
        tail -n 60 "$log" | sed 's/^/      /'
    fi
}

# counted NAME COMMAND...: a runner that prints its own counts as `N passed, N failed` last.
counted() {
    local name=$1 start=$SECONDS line p f
    shift
    "$@" >"$log" 2>&1
    line=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$log" | tail -n 1)
    p=${line%% *} f=$(sed -n 's/.*passed, \([0-9]*\) failed/\1/p' <<<"$line")
    [ -n "$line" ] && [ "$((p + f))" -gt 0 ] || { p=0 f=1; line="no test ran"; }
    passed=$((passed + p)) failed=$((failed + f))
    printf '%-5s %-34s %4d s  %s\n' "$([ "$f" = 0 ] && echo ok || echo FAIL)" "$name" $((SECONDS - start)) "$line"
    [ "$f" = 0 ] || grep -vE '^(ok|\.)' "$log" | tail -n 60 | sed 's/^/      /'
}

build() { # PRESET COMPILER [TARGETS]
    local preset=$1 compiler=$2
    shift 2
    CC=$compiler cmake --preset "$preset" -B "build/$preset-$compiler" >/dev/null &&
        cmake --build "build/$preset-$compiler" -j2 ${1:+--target "$@"}
}

counted_ctest() {
    local out total bad
    out=$(ASAN_OPTIONS=detect_leaks=1 ctest --test-dir "build/asan-gcc" --output-on-failure -j2 2>&1)
    echo "$out"
    total=$(sed -n 's/.*tests failed out of \([0-9]*\)/\1/p' <<<"$out")
    bad=$(sed -n 's/.*, \([0-9]*\) tests failed out of.*/\1/p' <<<"$out")
    echo "$((${total:-0} - ${bad:-1})) passed, ${bad:-1} failed"
}

counted_python() {
    local out n bad
    out=$(cd tests/worker && CUDA_AGENT_DEVICE_LIB=$PWD/../../build/release-gcc/bin/libca_device.so PYTHONPATH=../../py \
        "$python" -m unittest -v 2>&1)
    echo "$out"
    n=$(sed -n 's/^Ran \([0-9]*\) test.*/\1/p' <<<"$out")
    bad=$(grep -cE '^(FAIL|ERROR):' <<<"$out")
    grep -qE '^(OK|FAILED)' <<<"$out" || bad=1
    echo "$((${n:-0} - bad)) passed, $bad failed"
}

counted_bats() { # FILE...: side by side
    local out f
    out=$(for f; do
        (o=$(BIN=$PWD/build/release-gcc/bin bats --timing --tap "$f" 2>&1); echo "$o") &
    done; wait)
    echo "$out"
    echo "$(grep -c '^ok' <<<"$out") passed, $(grep -c '^not ok' <<<"$out") failed"
}

# lane NAME: the function of that name, beside what else runs; its lines and counts are kept.
declare -A lane_pid
lane() {
    touch "$room/$1.lines"
    (
        passed=0 failed=0 log=$room/$1.log
        "$1" >"$room/$1.lines" 2>&1
        echo "$passed $failed" >"$room/$1.counts"
    ) &
    lane_pid[$1]=$!
}

compiled() {
    # Without libca_device.so: its OpenMP is gcc's.
    step "build release, clang" build release clang cuda-agent ca-runner
    step "build asan, gcc" build asan gcc
    counted "unit tests (ASan, UBSan)" counted_ctest
    counted "worker (python)" counted_python
    if command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ]; then
        step "CUDA sources compile" tools/cuda_check.sh
        counted "skill, recipes compile" tools/skill_check.sh
    else
        echo "note  no nvcc here: CUDA sources are not compiled"
    fi
    step "the packed tree works elsewhere" tools/dist_check.sh build/release-gcc/bin "$python"
    counted "fuzzing, 10 s a parser" tools/fuzz.sh 10
}

# In the user's home: torch's precompiled headers are kept there.
torch() {
    counted "attacks, torch contract" build/release-gcc/bin/attacks cpu "$python" tests/attacks/task.py tests/attacks/torch verify
    counted "commands (bats), torch, tasks" counted_bats tests/cli/torch.bats tests/cli/tasks.bats
}

# In a home of their own: endurance counts what is left in it.
native() {
    export CUDA_AGENT_HOME=$room/home
    counted "attacks, cpu" build/release-gcc/bin/attacks cpu "$python" tests/attacks/task.py tests/attacks/cpu verify
    counted "endurance, cpu" build/release-gcc/bin/endure cpu "$python" tests/attacks/task.py tests/attacks/cpu --count 60
    counted "mutants, cpu" build/release-gcc/bin/mutants cpu "$python" tests/mutants --count 360 --honest 180 \
        --only layer_norm,matmul,conv1d,rms_norm_fp16
    counted "attacks, cpu, as in a container" tests/attacks/in_container.sh build/release-gcc/bin "$python"
    counted "commands (bats)" counted_bats tests/cli/commands.bats
}

python=$(tools/python.sh) || { echo "0 passed, 1 failed"; exit 1; }
export CUDA_AGENT_PYTHON=$python
step "floors" python3 tools/floors.py tools/floors.txt src
step "format" tools/format_check.sh
step "lint (length, parameters, names)" python3 tools/lint.py
step "build release, gcc" build release gcc
step "docs/cli.md is fresh" bash -c 'build/release-gcc/bin/cuda-agent help --format markdown | diff - docs/cli.md'
counted "skill" python3 tests/skill/test_skill.py
lanes=(compiled torch native)
for name in "${lanes[@]}"; do lane "$name"; done
for name in "${lanes[@]}"; do
    tail -n +1 -f --pid="${lane_pid[$name]}" "$room/$name.lines"
    wait "${lane_pid[$name]}"
    read -r p f <"$room/$name.counts" || { p=0 f=1; echo "FAIL  $name did not end"; }
    passed=$((passed + p)) failed=$((failed + f))
done
echo
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
