#!/usr/bin/env bats
bats_require_minimum_version 1.5.0
# `doctor --endpoint` against the scripted endpoint in each of its disguises (tests/endpoint).
load person

scripts=$BATS_TEST_DIRNAME/../endpoint/scripts

serve() { # DISGUISE SCRIPT...: its address in $url
    local as=$1
    shift
    "$BIN/scripted_endpoint" --as "$as" "$@" >port 3>&- &
    served=$!
    while [ ! -s port ]; do
        kill -0 "$served"
        read -rt 0.05 <> <(:) || true
    done
    url=http://127.0.0.1:$(cat port)
}

teardown() {
    [ -z "${served:-}" ] || kill "$served"
}

doctor() {
    run timeout 60 "$agent" doctor --endpoint "$url" "$@"
}

@test "as OpenAI: max_completion_tokens, no temperature, no tokens" {
    serve openai "$scripts/probe.json"
    doctor
    is 0 "models     ok   probe" "hidden: 15 tokens are counted" "max_completion_tokens for max_tokens" \
        "without temperature" "without logprobs" "without token ids" "id         ok   call_" "window     no" \
        "limit=max_completion_tokens temperature=false logprobs=false token_ids=false" "dialect    openai"
}

@test "as vLLM: reasoning, the window from the list, tokens with tools and stream" {
    serve vllm "$scripts/probe.json"
    doctor
    is 0 "window     ok   8192 tokens" "in 'reasoning'" "chatcmpl-tool-" "tokens     ok   26 ids, 26 log-probabilities" \
        "compat     reasoning=reasoning"
    [[ $output != *steps* ]]
}

@test "as llama.cpp: no log-probabilities with tools and stream, the window from /props, comments" {
    serve llamacpp "$scripts/probe.json"
    doctor
    is 0 "window     ok   8192 tokens" "in 'reasoning_content'" "comments or pings" "without logprobs" "two calls in one answer" \
        "(32 characters)" "compat     logprobs=false token_ids=false"
}

@test "as Ollama: no usage, calls under one index; the start of a long prompt is lost" {
    serve ollama "$scripts/probe.json"
    doctor
    is 0 "usage      no   none in streams" "all under one index; the reason says stop"
    doctor --thorough
    is 1 "marker     LACK the first line was not found again" "OLLAMA_CONTEXT_LENGTH" "not usable"
    doctor --thorough --window 6000
    is 0 "marker     ok   the first line of"
}

@test "as Anthropic: found by its list, thinking signed and adaptive, pings" {
    serve anthropic "$scripts/probe.json"
    doctor
    is 0 "in 'thinking'" "adaptive thinking for a budget" "id         ok   toolu_" "comments or pings" "compat     thinking=adaptive" \
        "dialect    anthropic"
}

@test "JSON, and what is kept for later runs" {
    serve vllm "$scripts/probe.json"
    doctor --json
    [ "$status" -eq 0 ]
    json 'j["schema"] == "cuda-agent/doctor-endpoint/1" and j["usable"] and j["window"] == 8192 and j["model"] == "probe"' <<<"$output"
    json 'j["compat"]["reasoning"] == "reasoning" and all(r["good"] for r in j["rows"])' <<<"$output"
    [ "$(cat "$CUDA_AGENT_HOME"/endpoints/*.json | grep -c '"window": 8192')" -eq 2 ] # under its name, and as the only one
}

@test "a key: demanded, from a variable, from a file, never told" {
    export TEST_KEY=sk-right WRONG_KEY=sk-wrong
    serve openai --key-env TEST_KEY "$scripts/probe.json"
    doctor
    is 1 "models     LACK auth (HTTP 401)" "--key-env NAME"
    doctor --key-env WRONG_KEY
    is 1 "auth (HTTP 401)"
    [[ $output != *sk-* ]]
    doctor --key-env TEST_KEY
    is 0 "usable"
    echo sk-right >key
    doctor --key-file key
    is 0 "usable"
    run ! grep -r sk-right "$CUDA_AGENT_HOME"
    doctor --key-env NOT_SET
    is 3 "the variable NOT_SET is not set"
    doctor --key-env TEST_KEY --key-file key
    is 2 "one of them"
}

@test "a key for Anthropic's header is found, too" {
    export TEST_KEY=sk-right
    serve anthropic --key-env TEST_KEY "$scripts/probe.json"
    doctor --key-env TEST_KEY
    is 0 "dialect    anthropic" "usable"
}

@test "several models: which? and one that is not there" {
    serve vllm "$scripts/probe.json" "$scripts/markup.json"
    doctor
    is 1 "models     LACK probe, markup" "say which: --model NAME"
    doctor --model probe
    is 0 "probe (2 in the list)"
    doctor --model other
    is 1 "'other' is not among probe, markup" "answer     LACK" "does not exist"
}

@test "a server without a parser for calls" {
    serve vllm "$scripts/markup.json"
    doctor
    is 1 "call       LACK the call came as text" "--enable-auto-tool-choice"
}

@test "a server that cannot stream calls" {
    serve vllm "$scripts/whole.json"
    doctor
    is 0 "call       no   streams with tools fail" "call       ok   right" "two calls in one answer" "stream=false"
}

@test "nobody there, and no address" {
    url=http://127.0.0.1:9 doctor
    is 1 "reach      LACK" "is the server running" "not usable"
    url=ftp://x doctor
    is 3 "is not an address"
    run "$agent" doctor --about endpoint
    is 2 "which? --endpoint"
}

@test "the endpoint from the project's file and from variables" {
    serve vllm "$scripts/probe.json"
    printf 'endpoint: %s\nmodel: probe\n' "$url" >cuda-agent.yaml
    run timeout 60 "$agent" doctor
    is 0 "models     ok   probe"
    CUDA_AGENT_MODEL=other run timeout 60 "$agent" doctor
    is 1 "'other' is not among"
}
