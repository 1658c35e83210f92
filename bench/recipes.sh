#!/usr/bin/env bash
# Each recipe of the skill as a candidate for the task of its name in bench/recipes, on this machine's GPU: a table in Markdown, then
# `N passed, N failed`. usage: bench/recipes.sh BIN_DIR [verify|grade] [NAME...]
set -u
cd "$(dirname "$0")/.." || exit 2
bin=$1 step=${2:-grade} passed=0 failed=0
shift $(($# < 2 ? $# : 2))
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ $# -gt 0 ] || set -- $(basename -s .cu -a skills/fast-cuda-kernels/references/recipes/*.cu)
echo "| recipe | verdict | class | error | us | x eager | x compile | x best | what else |"
echo "|---|---|---|---|---|---|---|---|---|"
for name; do
    mkdir -p "$work/$name/kernels"
    cp "skills/fast-cuda-kernels/references/recipes/$name.cu" "$work/$name/kernels/"
    "$bin/cuda-agent" "$step" "$work/$name" --task "bench/recipes/$name.py" --target cuda --json >"$work/out" 2>"$work/err"
    if [ $? = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
    "${CUDA_AGENT_PYTHON:-python3}" - "$name" "$work" <<'P'
import json, sys
name, work = sys.argv[1:]
try:
    v = json.load(open(f"{work}/out"))
except ValueError:
    print(f"| {name} | error | | | | | | | {open(work + '/err').read()[-300:].strip()!r} |")
    sys.exit()
number = lambda x: x.get("ratio", x.get("median")) if isinstance(x, dict) else x
ratio = lambda key: "" if not number(v["speedup"].get(key)) else f"{number(v['speedup'][key]):.2f}"
us, p = number(v["time_us"].get("candidate")), v.get("precision") or {}
error = "" if p.get("rel_l2") is None else f"{number(p['rel_l2']):.1e}"
print(f"| {name} | {v['status']} | {p.get('class')} | {error} | {'' if us is None else f'{us:.1f}'} |",
      " | ".join(ratio(k) for k in ("vs_eager", "vs_compile", "vs_best")), f"| {'' if v['status'] == 'pass' else v['reason']} |")
P
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
