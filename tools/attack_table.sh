#!/usr/bin/env bash
# Run the attack suite and write its table: what was tried, the verdict, what caught it.
# usage: tools/attack_table.sh BIN_DIR cpu|cuda >bench/results/DATE-attacks-TARGET.md
set -u
cd "$(dirname "$0")/.."
bin=$1 target=$2
python=$(tools/python.sh) || exit 2
rows=$(mktemp)
trap 'rm -f "$rows"' EXIT
suite() { # FOLDER verify|time TASK
    "$bin/attacks" "$target" "$python" "tests/attacks/$3.py" "tests/attacks/$1" "$2" --table "$rows" >&2 || bad=1
}
bad=0
if [ "$target" = cuda ]; then
    suite cuda verify task_cuda
    suite cuda_timed time task_cuda
    suite cuda_small time task_cuda_small
else
    suite cpu verify task
    suite cpu_timed time task
fi
echo "# The attack suite, target $target, $(date -u +%F)"
echo
echo "\`tools/attack_table.sh BIN_DIR $target\`. Numbers: the catalogue in [docs/trust.md](../../docs/trust.md)."
for kind in hacks:Attacks honest:"Honest work that uses the same means" fault:"Plain mistakes"; do
    echo
    echo "## ${kind#*:}"
    echo
    echo "| kind | candidate | verdict | what caught it, or a note |"
    echo "|---|---|---|---|"
    grep "^| ${kind%%:*}" "$rows" | sort -t ' ' -k 3,3n
done
exit $bad
