#!/usr/bin/env bash
# Bring what is missing: Debian packages (as root; else the list and the command are printed) and a python with PyTorch.
# usage: tools/setup.sh [--tests]. Quick when nothing is missing.
set -eu
cd "$(dirname "$0")/.."
packages=(gcc g++ libc6-dev make cmake ninja-build pkg-config python3 python3-dev python3-venv
    libjansson-dev libsqlite3-dev libseccomp-dev libyaml-dev libcurl4-openssl-dev libpcre2-dev libopenblas-dev libdnnl-dev git)
[ "${1:-}" = --tests ] && packages+=(clang libclang-rt-dev clang-format libcmocka-dev bats openssl util-linux)

bring_packages() {
    local missing=() installed p
    if ! command -v dpkg-query >/dev/null; then
        echo "note  neither Debian nor Ubuntu: the packages are yours to bring; their names there: ${packages[*]}" >&2
        return
    fi
    installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' 2>/dev/null | sed -n 's/^installed //p')
    for p in "${packages[@]}"; do
        grep -qxF "$p" <<<"$installed" || missing+=("$p")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    if [ "$(id -u)" != 0 ]; then
        printf 'missing packages: %s\n  hint: sudo apt-get install %s\n' "${missing[*]}" "${missing[*]}" >&2
        exit 1
    fi
    echo "installing: ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -q >/dev/null
    apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null
}

# Outside the tree, named after the lock file; "complete" is written last, so that an interrupted one is made again.
bring_python() {
    local status=0 venv
    tools/python.sh >/dev/null || status=$?
    [ $status = 1 ] || return $status
    venv=$(tools/python.sh --venv)
    mkdir -p "$(dirname "$venv")"
    exec 9>"$venv.lock" # two runs of make at once: the second waits
    flock 9
    tools/python.sh >/dev/null && return
    echo "making a python with PyTorch in $venv (about 5 GB, a minute or two)"
    rm -rf "$venv"
    "$(PATH=/usr/bin:/bin:$PATH command -v python3)" -m venv "$venv"
    "$venv/bin/pip" install -q --disable-pip-version-check -r py/requirements.txt
    touch "$venv/complete"
}

bring_packages
bring_python
if [ "${1:-}" != --tests ] && ! [ -x "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" ] && ! command -v nvcc >/dev/null; then
    echo "note  no nvcc here: --target cuda needs the CUDA toolkit (12.4 or later); --target cpu works without"
fi
