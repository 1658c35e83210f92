#!/usr/bin/env bash
# Bring what is missing: Debian packages (as root; else the list is printed) and a python with PyTorch.
# usage: tools/setup.sh [--tests]. Quick when nothing is missing.
set -eu
cd "$(dirname "$0")/.."
packages=(gcc g++ libc6-dev make cmake ninja-build pkg-config python3 python3-dev python3-venv
    libjansson-dev libsqlite3-dev libseccomp-dev libyaml-dev libopenblas-dev libdnnl-dev git)
[ "${1:-}" = --tests ] && packages+=(clang clang-format libcmocka-dev bats universal-ctags util-linux)

missing=()
installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' 2>/dev/null | sed -n 's/^installed //p')
for p in "${packages[@]}"; do
    grep -qxF "$p" <<<"$installed" || missing+=("$p")
done
if [ ${#missing[@]} -gt 0 ]; then
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        echo "missing packages; as root: apt-get install ${missing[*]}" >&2
        exit 1
    fi
    echo "installing: ${missing[*]}"
    apt-get update -q >/dev/null
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q "${missing[@]}" >/dev/null
fi

# A python that imports torch >= 2.4: the caller's, or ours, outside the tree, named after the lock file.
usable() {
    [ -n "$1" ] && "$1" -E -c 'import importlib.util as u, os, re
t = open(os.path.join(os.path.dirname(u.find_spec("torch").origin), "version.py")).read()
v = re.search(r"__version__ = .(\d+)\.(\d+)", t)
raise SystemExit(0 if (int(v[1]), int(v[2])) >= (2, 4) else 1)' 2>/dev/null
}
for candidate in "${CUDA_AGENT_PYTHON:-}" "${VIRTUAL_ENV:+$VIRTUAL_ENV/bin/python3}"; do
    usable "$candidate" && exit 0
done
home=${CUDA_AGENT_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/cuda-agent}
venv=$home/venv-$(sha256sum py/requirements.txt | cut -c1-12)
[ -e "$venv/complete" ] && exit 0
usable "$(command -v python3)" && exit 0
echo "making a python with PyTorch in $venv (about 5 GB, a minute or two)"
rm -rf "$venv"
mkdir -p "$home"
/usr/bin/python3 -m venv "$venv"
"$venv/bin/pip" install -q --disable-pip-version-check -r py/requirements.txt
touch "$venv/complete"
