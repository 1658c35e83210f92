#!/usr/bin/env bash
# Print the python that the tests use: the order of src/app/python.c.
home=${CUDA_AGENT_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/cuda-agent}
venv=$home/venv-$(sha256sum "$(dirname "$0")/../py/requirements.txt" | cut -c1-12)
for p in "${CUDA_AGENT_PYTHON:-}" "${VIRTUAL_ENV:+$VIRTUAL_ENV/bin/python3}" "$venv/bin/python3" "$(command -v python3)"; do
    if [ -n "$p" ] && "$p" -E -c 'import importlib.util as u; raise SystemExit(u.find_spec("torch") is None)' 2>/dev/null; then
        echo "$p"
        exit 0
    fi
done
echo "no python with torch: run tools/setup.sh" >&2
exit 1
