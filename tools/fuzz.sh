#!/usr/bin/env bash
# Every parser of foreign bytes under libFuzzer, two at a time; what is new and reaches further is added to its corpus when
# --keep is given. A finding is left in build/fuzz/NAME-*. usage: tools/fuzz.sh SECONDS [--keep]
set -u
cd "$(dirname "$0")/.."
seconds=$1 keep=${2:-}
names=(signature sse assembly repair graph imports plan frames messages tensors tool_args events trace)
targets=("${names[@]/#/fuzz_}")
cmake --preset fuzz >/dev/null && cmake --build build/fuzz -j2 --target "${targets[@]}" >build/fuzz.log 2>&1 ||
    { tail -n 20 build/fuzz.log; echo "0 passed, 1 failed"; exit 1; }

one() { # NAME
    local corpus=tests/fuzz/corpus/$1 fresh=build/fuzz/corpus-$1
    mkdir -p "$fresh"
    build/fuzz/bin/fuzz_"$1" -max_total_time="$seconds" -max_len=65536 -timeout=10 -rss_limit_mb=2048 -artifact_prefix="build/fuzz/$1-" \
        -print_final_stats=1 "$fresh" "$corpus" >"build/fuzz/$1.log" 2>&1
}

failed=0
for ((i = 0; i < ${#names[@]}; i += 2)); do
    declare -A pid=()
    for name in "${names[@]:i:2}"; do one "$name" & pid[$name]=$!; done
    for name in "${!pid[@]}"; do
        if wait "${pid[$name]}"; then
            echo "ok   $name: $(sed -n 's/^stat::number_of_executed_units: *//p' "build/fuzz/$name.log") runs"
        else
            echo "FAIL $name"
            tail -n 30 "build/fuzz/$name.log"
            failed=$((failed + 1))
        fi
        [ "$keep" = --keep ] && build/fuzz/bin/fuzz_"$name" -merge=1 "tests/fuzz/corpus/$name" "build/fuzz/corpus-$name" >/dev/null 2>&1
    done
    unset pid
done
echo "$((${#names[@]} - failed)) passed, $failed failed"
[ "$failed" = 0 ]
