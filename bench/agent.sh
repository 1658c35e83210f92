#!/usr/bin/env bash
# What a turn costs the harness: the same scripted episode of 20 turns (bench/agent/turns.json), played to mini-swe-agent and to
# ours; a line of JSON each. usage: bench/agent.sh BIN_DIR [EPISODES [VENV]]; VENV has mini-swe-agent in it, or is made.
set -eu
bin=$(realpath "$1") episodes=${2:-1} venv=${3:-${TMPDIR:-/tmp}/cuda-agent-bench-mini}
cd "$(dirname "$0")"
if ! [ -x "$venv/bin/python3" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install -q --disable-pip-version-check mini-swe-agent==2.4.6
fi
port=$(mktemp)
"$bin/scripted_endpoint" --as vllm agent/turns.json >"$port" &
server=$!
trap 'kill $server; rm -f "$port"' EXIT
while ! [ -s "$port" ]; do kill -0 $server; read -rt 0.05 <> <(:) || true; done
url=http://127.0.0.1:$(cat "$port")
"$venv/bin/python3" agent_mini.py "$url" turns "$episodes"
if [ -x "$bin/bench_agent" ]; then # URL MODEL EPISODES: the same members
    "$bin/bench_agent" "$url" turns "$episodes"
else
    echo "bench_agent is not built in $bin" >&2
fi
