#!/usr/bin/env bats
bats_require_minimum_version 1.5.0
# What a person meets at the command line: texts, hints and exit statuses.
load person

@test "--help lists every command" {
    run "$agent" --help
    is 0 optimize replay grade compile verify profile workdir "task " doctor config "Exit status"
    for command in optimize replay grade compile verify profile workdir task doctor config help; do
        run "$agent" "$command" --help
        is 0 "usage: cuda-agent $command"
    done
}

@test "--version is one line" {
    run "$agent" --version
    is 0 "cuda-agent "
    [ "${#lines[@]}" -eq 1 ]
}

@test "no command: the list, as an error" {
    run "$agent"
    is 2 "usage: cuda-agent COMMAND"
}

@test "an unknown command suggests the near one" {
    run "$agent" grde
    is 2 "unknown command 'grde'" "did you mean 'grade'?"
    run "$agent" something-else-entirely
    is 2 "unknown command" "lists the commands"
    [[ $output != *"did you mean"* ]]
}

@test "a pipe for a task is refused at once" {
    mkfifo pipe.py
    run timeout 20 "$agent" task check pipe.py
    is 5 "'pipe.py' is a pipe or a device, wanted a file"
}

@test "an unknown option, a bad value, a missing value, one given twice" {
    run "$agent" grade --nope
    is 2 "unknown option '--nope'" "hint: --help"
    run "$agent" grade . --threads 9999
    is 2 "threads: 9999 is not between"
    run "$agent" grade . --target tpu
    is 2 "target: 'tpu' is none of: auto, cuda, cpu"
    run "$agent" grade --threads
    is 2 "--threads wants a value"
    run "$agent" grade . --threads 2 --threads 3
    is 2 "--threads is given twice"
}

@test "wrong operands" {
    run "$agent" grade
    is 2 "wants one work folder"
    run "$agent" grade a b
    is 2 "wants one work folder, got 2"
    run "$agent" task chekc x.py
    is 2 "wants 'check'"
    run "$agent" help nope
    is 2 "unknown command 'nope'"
}

@test "a reader that has seen enough ends it without a word" {
    { sleep 0.5; "$agent" help --format markdown 2>err || echo $? >rc; } | true || true
    [ "$(cat rc)" = 141 ] # SIGPIPE, as other tools
    [ ! -s err ]
}

@test "a result that did not reach its file is an error" {
    run sh -c '"$1" help --format markdown >/dev/full' sh "$agent"
    is 4 "is its disk full?"
    run sh -c '"$1" help --format markdown >&-' sh "$agent"
    is 4 "it is closed"
}

@test "files that are not there" {
    run "$agent" task check nowhere.py --target cpu
    is 4 "open 'nowhere.py': No such file or directory"
    run "$agent" verify . --target cpu
    is 2 "model.py' is not there" "hint: a work folder holds model.py and kernels/"
    task "return x"
    run "$agent" verify --task task.py . --target cpu
    is 5 "no cpu source" "hint: put a .c file into its kernels/ folder"
    mkdir -p w/kernels
    ln -s /etc/passwd w/kernels/a.c
    run "$agent" verify --task task.py w --target cpu
    is 5 "'a.c' is a symbolic link"
}

@test "an error as JSON" {
    run --separate-stderr "$agent" verify . --json
    is 2
    json "j['schema'] == 'cuda-agent/error/1' and j['error']['code'] == 'usage' and j['error']['hint']" <<<"$output"
}

@test "compile: a candidate that builds, one that does not" {
    task "return x"
    mkdir -p w/kernels
    mv task.py w/model.py
    printf '#include "cuda_agent.h"\nint ca_forward(const struct ca_call *c) { return c->in.n != 1; }\n' >w/kernels/a.c
    run "$agent" compile w --target cpu
    is 0 pass
    echo 'int broken(void) { return nope; }' >>w/kernels/a.c
    run --separate-stderr "$agent" compile w --target cpu --json
    is 1
    json "j['status'] == 'compile_error' and 'nope' in j['reason']" <<<"$output"
}

@test "config show tells where a value comes from" {
    mkdir -p project/below .config/cuda-agent
    printf '# ours\ntarget: cpu\nthreads: 3\n' >project/cuda-agent.yaml
    printf 'threads: 7\npreset: strict\n' >.config/cuda-agent/config.yaml
    cd project/below
    CUDA_AGENT_TARGET=cuda run "$agent" config show --origin
    is 0
    [[ $output =~ grade.threads\ +3\ .*/project/cuda-agent.yaml:3 ]]
    [[ $output =~ grade.preset\ +strict\ .*/.config/cuda-agent/config.yaml:2 ]]
    [[ $output =~ grade.target\ +cuda\ +CUDA_AGENT_TARGET ]]
    [[ $output =~ grade.seconds\ +0\ +default ]]
}

@test "a bad configuration is refused with file and line" {
    printf '# ours\n\nthraeds: 2\n' >cuda-agent.yaml
    run "$agent" config show
    is 3 "/cuda-agent.yaml:3: unknown option 'thraeds'" "hint:"
    echo 'target: tpu' >cuda-agent.yaml
    run "$agent" grade .
    is 3 "/cuda-agent.yaml:1: target: 'tpu' is none of"
    echo 'threads: [2' >cuda-agent.yaml
    run "$agent" grade .
    is 3 "/cuda-agent.yaml:"
    printf 'threads: 2\nthreads: 3\n' >cuda-agent.yaml
    run "$agent" grade .
    is 3 "/cuda-agent.yaml:2: 'threads' is given twice"
    rm cuda-agent.yaml
    CUDA_AGENT_THREADS=many run "$agent" grade .
    is 3 "CUDA_AGENT_THREADS: threads: 'many' is not a whole number"
}

# candidate FOLDER ROW: a work folder of one of the exam's timed rows
candidate() {
    mkdir -p "$1/kernels"
    cp "$exam/task.py" "$1/model.py"
    cp "$exam/cpu_timed/$2.c" "$exam/cpu_timed/row.h" "$1/kernels/"
}

@test "optimize keeps what it verified and resumes; grade times candidates against stored baselines" {
    exam=$BATS_TEST_DIRNAME/../attacks
    run --separate-stderr "$agent" optimize "$exam/task.py" --target cpu --no-check --seconds 2 --out out --json
    [ "$status" -le 1 ]
    json "j['verdict']['status'] in ('pass', 'undecided') and j['confirmed'] and j['traced'] and j['verdict']['candidate']['author'] == 'playbook'" <<<"$output"
    [ -f out/best/verdict.json ] && [ -f out/best/kernels/forward.c ]

    run "$agent" optimize "$exam/task.py" --target cpu --no-check --seconds 2 --out out
    [ "$status" -le 1 ]
    [[ $output =~ [1-9][0-9]*\ answered\ from\ the\ log ]]

    for row in honest burns_while_others_run; do
        candidate $row $row
        run "$agent" grade $row --target cpu --seconds 2
        is 0 "eager" "best"
        [[ $output =~ ^(.*$'\n')*(pass|undecided: right) ]]
        [[ ! $output =~ measuring ]]
    done
    for row in right_when_verified skips_one_in_eight noise_every_other_call; do
        candidate $row $row
        run "$agent" grade $row --target cpu --seconds 2
        is 1 "wrong: a timed call gave a wrong answer"
    done
}

@test "doctor --json is JSON and says whether the cpu target works" {
    run --separate-stderr "$agent" doctor --json
    is 0
    json "j['schema'] == 'cuda-agent/doctor/1' and j['cpu_works'] is True and {'gcc', 'torch', 'sandbox'} <= {r['what'] for r in j['rows']}" <<<"$output"
}

@test "help writes completion, a man page and Markdown" {
    run "$agent" help --format bash
    is 0 "complete -F"
    bash -n <<<"$output"
    run "$agent" help --format man
    is 0 ".TH CUDA-AGENT 1"
    run "$agent" help --format markdown
    is 0 "## cuda-agent grade"
}

@test "a memory limit in which nothing starts" {
    run "$agent" grade w --target cpu --mem-gib 0.0001
    is 2 "--mem-gib 0.0001" "hint: give 0.125 or more"
}

# sum FOLDER: a work folder with a small right candidate
sum() {
    mkdir -p "$1"
    cp -r "$BATS_TEST_DIRNAME"/../../examples/candidates/cpu/linear_sum/. "$1"
}

@test "a folder for builds and results that cannot be used" {
    sum w
    touch file
    CUDA_AGENT_HOME=$PWD/file run "$agent" compile w --target cpu
    is 4 "the folder of builds and results" "file' is there and is no folder" "hint: set CUDA_AGENT_HOME"
    CUDA_AGENT_HOME=/proc/nowhere run "$agent" compile w --target cpu
    is 4 "make folder '/proc/nowhere'" "hint: set CUDA_AGENT_HOME"
    CUDA_AGENT_HOME=/sys run "$agent" compile w --target cpu
    is 4 "open '/sys/store.db'" "hint: set CUDA_AGENT_HOME"
    if [ "$(id -u)" != 0 ]; then
        CUDA_AGENT_HOME=/usr run "$agent" compile w --target cpu
        is 4 "'/usr', cannot be written" "hint: set CUDA_AGENT_HOME"
    fi
}

@test "files of kernels/ that nobody reads are named" {
    sum w
    touch w/kernels/fast.cu w/kernels/table.inc w/kernels/.hidden
    run "$agent" compile w --target cpu
    is 0 pass "not read from kernels/, by their endings: " "fast.cu" "table.inc" "target cpu"
    [[ $output != *hidden* ]]
}

@test "a verdict that cannot be kept is printed, and is an error" {
    mkdir home
    mount -t tmpfs -o size=24m none home 2>mount.err || skip "no tmpfs can be mounted here: $(cat mount.err)"
    sum w
    # Full from the moment on when it measures.
    "$agent" grade w --target cpu --seconds 2 >out 2>err && echo 0 >rc || echo $? >rc &
    for _ in {1..600}; do
        grep -q measuring err && break
        sleep 0.1
    done
    dd if=/dev/zero of=home/full bs=64k 2>/dev/null || true
    wait
    run cat out err rc
    umount -l home
    is 0 "time of eager is not kept" "keep the verdict" "hint: make room" "4"
    grep -Eq '^(pass|undecided)' out
}

@test "a runner that somebody wakes while it is stopped" {
    sum w
    "$agent" grade w --target cpu --seconds 2 >out 2>err &
    grading=$!
    until grep -q measuring err; do # before, there are trusted ones
        kill -0 "$grading"
        sleep 0.1
    done
    while kill -0 "$grading" 2>/dev/null; do
        for child in $(cat /proc/"$grading"/task/*/children 2>/dev/null); do
            grep -q '^State:.T' "/proc/$child/status" 2>/dev/null && kill -CONT "$child" 2>/dev/null
        done || true
    done
    run cat out err
    is 0 "tampered" "it was stopped while its inputs were written, and woke"
}
