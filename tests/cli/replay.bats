#!/usr/bin/env bats
bats_require_minimum_version 1.5.0
# An episode's log at the command line. The logs are those of tests/agent/fixtures/make.py.
load person

setup_file() {
    export fixtures=$BATS_TEST_DIRNAME/../agent/fixtures
    export page_check=$BATS_TEST_DIRNAME/../agent/page_check.py
}

lines_of() { # FILE N: as many lines, each a JSON object
    [ "$(wc -l <"$1")" -eq "$2" ] && python3 -c 'import json, sys; [json.loads(line) for line in open(sys.argv[1])]' "$1"
}

@test "the fixtures are what their program makes" {
    python3 "$fixtures/make.py" made
    diff -r made/episode "$fixtures/episode"
    diff -r made/hostile "$fixtures/hostile"
}

@test "a line a turn, from the folder and from the log" {
    run "$agent" replay "$fixtures/episode"
    is 0 "row_softmax  cuda" "compile = compile_error" "Edit kernels/softmax.cu!" "[user nudge]" "[context mask]" "[resumed]" \
        "answer: cut" "submitted: the model called submit; best 19.88 us at turn 14, 1.50x of compile" "3 events do not count"
    [[ $output != *$'\x1b'* ]]
    [ "$(grep -cE '^ +[0-9]+ ' <<<"$output")" -eq 17 ]
    folder=$output
    run "$agent" replay "$fixtures/episode/events.jsonl"
    [ "$output" = "$folder" ]
}

@test "colours on a terminal, not when they are not wanted" {
    command -v script >/dev/null || skip "no script(1) here"
    run script -qec "stty cols 60; TERM=xterm '$agent' replay '$fixtures/episode'" /dev/null
    [[ $output == *$'\x1b[32m'* ]]
    longest=$(sed 's/\x1b\[[0-9;]*m//g; s/\r//' <<<"$output" | awk '{ if (length > n) n = length } END { print n }')
    [ "$longest" -le 60 ]
    NO_COLOR=1 TERM=xterm run script -qec "'$agent' replay '$fixtures/episode'" /dev/null
    [[ $output != *$'\x1b['* ]]
}

@test "one turn whole" {
    run "$agent" replay "$fixtures/episode" --turn 3
    is 0 "--- thinking" "--- call Edit" "file_path" "--- result verify" "+        y[(size_t)blockIdx.x" '"misses": 524288'
    run "$agent" replay "$fixtures/episode" --turn 99
    is 2 "there is no turn 99" "hint: without --turn"
}

@test "a summary as JSON" {
    run --separate-stderr "$agent" replay "$fixtures/episode" --json
    is 0
    json "(j['schema'], j['status'], j['turns'], j['best_turn']) == ('cuda-agent/replay/1', 'submitted', 16, 14)" <<<"$output"
    json "j['calls']['Edit'] == {'n': 9, 'failed': 1} and len(j['evals']) == 10 and j['dropped_events'] == 3" <<<"$output"
}

@test "files in every format" {
    run "$agent" replay "$fixtures/episode" --html e.html --markdown e.md --messages m.jsonl --anthropic an.jsonl --samples s.jsonl \
        --atif a.json
    is 0
    [ -z "$output" ]
    lines_of m.jsonl 1
    lines_of an.jsonl 1
    lines_of s.jsonl 3
    grep -q '^## Turn 16' e.md
    json "j['schema_version'] == 'ATIF-v1.4' and len(j['steps']) == 30" <a.json
    run python3 "$page_check" e.html row_softmax example-coder-32b submitted "19.88 us, turn 14" "128 threads" "model.py"
    is 0 "whole"
    run python3 "$page_check" e.html "what nobody said"
    is 1 "does not say"
    run ls
    [[ $output != *part* ]]
    run --separate-stderr "$agent" replay "$fixtures/episode" --messages -
    is 0
    json "j['messages'][0]['role'] == 'system'" <<<"$output"
}

@test "a page of hostile texts is inert" {
    run "$agent" replay "$fixtures/hostile" --html h.html --markdown h.md
    is 0
    run python3 "$page_check" h.html "<script>alert(1)" "onerror=alert(2)" "<U+202E>" "onerror=alert(6)"
    is 0 "whole"
    run "$agent" replay "$fixtures/hostile" --turn 1
    is 0
    [[ $output != *$'\x1b'* && $output != *$'\u202e'* ]]
}

@test "all attempts of a run" {
    mkdir -p run
    cp -r "$fixtures/episode" run/attempt-1
    cp -r "$fixtures/hostile" run/attempt-2
    run "$agent" replay run --messages m.jsonl --samples s.jsonl
    is 0
    lines_of m.jsonl 2
    lines_of s.jsonl 4
    run "$agent" replay run --messages m.jsonl --samples s.jsonl --only-passing
    is 0
    lines_of m.jsonl 1
    lines_of s.jsonl 3
    run "$agent" replay run
    is 0 "run/attempt-1" "run/attempt-2"
    run "$agent" replay run --html h.html
    is 2 "--html takes one episode, here are 2" "hint: name one: 'run/attempt-1'"
    [ ! -e h.html ]
}

@test "differences of files, and files of a turn" {
    run "$agent" replay "$fixtures/episode" --diff 4
    is 0 "--- a/kernels/softmax.cu" "-    softmax<<<rows, 256, 0, c->stream>>>(x->data, c->out.v[0].tensor.data, dim / 2);"
    run "$agent" replay "$fixtures/episode" --diff 2:16
    is 0 "+    softmax<<<rows, 128"
    run "$agent" replay "$fixtures/episode" --diff 3:x
    is 2 "--diff: 'x' is not a whole number" "hint: --diff 3:7"
    run "$agent" replay "$fixtures/episode" --restore 4 --to files
    is 0 "2 files as they were after turn 4, in files"
    grep -q 'tensor.data, dim);' files/kernels/softmax.cu
    run "$agent" replay "$fixtures/episode" --restore 4 --to files
    is 7 "folder 'files' is not empty" "hint:"
    run "$agent" replay "$fixtures/episode" --restore 4
    is 2 "--restore wants --to DIR"
    run "$agent" replay "$fixtures/hostile" --restore 1 --to out
    is 5 "'../../outside' would lie outside"
    [ ! -e out ]
}

@test "the calls once more" {
    run "$agent" replay "$fixtures/episode" --exec
    is 1 "turn 15 TodoWrite: differs: line 1 was 'The list is kept.'" "turn 2 compile: passed over" \
        "calls: 14 the same, 1 differ, 11 passed over; files: 19 the same, 0 differ"
    [ "$(grep -c differs <<<"$output")" -eq 1 ]
}

@test "logs that are none" {
    run "$agent" replay
    is 2 "wants the log of an episode" "hint:"
    run "$agent" replay nowhere
    is 4 "open 'nowhere'" "hint: name an episode's events.jsonl"
    mkdir empty
    run "$agent" replay empty
    is 5 "'empty' is a folder" "hint: name an episode's events.jsonl"
    { head -n 6 "$fixtures/episode/events.jsonl"; echo '{"v":1,"event'; echo '{}'; } >broken.jsonl
    run "$agent" replay broken.jsonl --html h.html
    is 5 "'broken.jsonl': line 7: JSON line 1" "hint: 'head -n"
    [ ! -e h.html ] && [ ! -e h.html.part ]
    : >none.jsonl
    run "$agent" replay none.jsonl
    is 0 "the log holds no event yet"
    head -c 9000 "$fixtures/episode/events.jsonl" >half.jsonl
    run "$agent" replay half.jsonl
    is 0 "unfinished" "the log's last line is half a one"
    run "$agent" replay half.jsonl --samples s.jsonl
    is 5 "its tokens end at byte" "tokens.bin lies beside the log"
    run "$agent" replay "$fixtures/episode" --html nowhere/e.html
    is 4 "create 'nowhere/e.html.part'"
    run "$agent" replay "$fixtures/episode" --to x
    is 2 "--to is of --restore"
}
