# What the tests of the command line share. BIN is the folder of the binaries.

setup() {
    agent=${BIN:?the folder of the binaries}/cuda-agent
    degenerate=$BATS_TEST_DIRNAME/../../examples/tasks/degenerate
    export CUDA_AGENT_HOME=$BATS_TEST_TMPDIR/home HOME=$BATS_TEST_TMPDIR
    unset "${!CUDA_AGENT_T@}"
    cd "$BATS_TEST_TMPDIR" || return 1
}

# task FORWARD-BODY: a small task, written to task.py
task() {
    cat >task.py <<END
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        $1


def get_inputs():
    return [torch.randn(256, 256)]


def get_init_inputs():
    return []
END
}

# is STATUS TEXT...: the last run ended so, and said each text
is() {
    if [ "$status" -ne "$1" ]; then
        echo "status $status, wanted $1: $output"
        return 1
    fi
    shift
    for text; do
        if [[ $output != *"$text"* ]]; then
            echo "'$output' does not say '$text'"
            return 1
        fi
    done
}

json() { # EXPRESSION: of the object `j`
    python3 -c 'import json, sys; j = json.load(sys.stdin); sys.exit(0 if eval(sys.argv[1]) else 1)' "$1"
}
