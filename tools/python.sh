#!/usr/bin/env bash
# Print the python whose torch is used, in the order of src/app/python.c: CUDA_AGENT_PYTHON (must do), VIRTUAL_ENV,
# the environment that tools/setup.sh makes, python3. usage: tools/python.sh [--venv: print only that environment's folder]
set -eu
cd "$(dirname "$0")/.."
home=${CUDA_AGENT_HOME:-${XDG_CACHE_HOME:-${HOME:?is not set: set CUDA_AGENT_HOME}/.cache}/cuda-agent}
venv=$home/venv-$(sha256sum py/requirements.txt | cut -c1-12)
if [ "${1:-}" = --venv ]; then
    echo "$venv"
    exit
fi

usable() { # torch >= 2.4, read from its files: an import takes seconds
    command -v "$1" >/dev/null && "$1" -E -c 'import importlib.util as u, os, re
s = u.find_spec("torch")
v = s and re.search(r"__version__ = .(\d+)\.(\d+)", open(os.path.join(os.path.dirname(s.origin), "version.py")).read())
raise SystemExit(0 if v and (int(v[1]), int(v[2])) >= (2, 4) else 1)' >/dev/null 2>&1
}

if [ -n "${CUDA_AGENT_PYTHON:-}" ]; then
    usable "$CUDA_AGENT_PYTHON" || { echo "CUDA_AGENT_PYTHON: '$CUDA_AGENT_PYTHON' is no python with torch 2.4 or later" >&2; exit 2; }
    command -v "$CUDA_AGENT_PYTHON"
    exit
fi
own=
[ -e "$venv/complete" ] && own=$venv/bin/python3
for p in "${VIRTUAL_ENV:+$VIRTUAL_ENV/bin/python3}" "$own" python3; do
    if [ -n "$p" ] && usable "$p"; then
        [ "$p" != "$own" ] || touch -c "$venv/complete" # src/app/python.c takes the one used last
        command -v "$p"
        exit
    fi
done
exit 1
