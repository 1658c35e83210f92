#!/usr/bin/env bash
# The attack suite on rung 2 of the ladder: where a default container refuses namespaces. As root it runs as an ordinary
# user, in a mount namespace where that user may pass the folders that lead to the program and to its python.
# The suite says at its end on which rung it stood: another than 2 is a failure.
# usage: tests/attacks/in_container.sh BIN_DIR PYTHON [FOLDER]
set -eu
self=$(realpath "$0")
bin=$(realpath "$1") python=$2 rows=${3:-tests/attacks/cpu}
cd "$(dirname "$self")/../.."

# The topmost folder on the way to $1 that others may not pass.
closed() {
    local at='' part
    IFS=/ read -ra parts <<<"$(realpath -ms "$1")"
    for part in "${parts[@]:1}"; do
        at=$at/$part
        [ ! -d "$at" ] || [ $((0$(stat -c %a "$at") & 1)) = 1 ] || { echo "$at"; return; }
    done
}

# Another folder in its place, with the same things in it.
open_up() {
    local behind=$room/behind$RANDOM name
    mkdir "$behind"
    mount --rbind "$1" "$behind"
    mount -t tmpfs -o mode=0711 tmpfs "$1"
    find "$behind" -mindepth 1 -maxdepth 1 -type d -printf '%f\n' | while read -r name; do
        mkdir "$1/$name"
        mount --rbind "$behind/$name" "$1/$name"
    done
}

suite() {
    CUDA_AGENT_HOME=$room/home "$@" "$bin/container" "$bin/attacks" cpu "$python" tests/attacks/task.py "$rows" verify |
        tee "$room/log"
    grep -qx "rung 2" "$room/log" || { echo "0 passed, 1 failed"; exit 1; }
}

if [ "$(id -u)" != 0 ]; then
    room=$(mktemp -d)
    trap 'rm -rf "$room"' EXIT
    suite env
elif [ -z "${CA_ROOM:-}" ]; then
    CA_ROOM=$(mktemp -d)
    export CA_ROOM
    trap 'rm -rf "$CA_ROOM"' EXIT
    unshare -m bash "$self" "$bin" "$python" "$rows"
else
    room=$CA_ROOM
    chmod 0711 "$room"
    mkdir "$room/home"
    chown 1000:1000 "$room/home"
    for path in "$bin/attacks" "$python" "$(realpath "$python")" "$PWD/tests"; do
        while folder=$(closed "$path") && [ -n "$folder" ]; do open_up "$folder"; done
    done
    suite setpriv --reuid=1000 --regid=1000 --clear-groups env
fi
