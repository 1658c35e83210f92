/* workdir: lay a folder to work in by hand or by an agent. */
#include <stdio.h>

#include "app/cmd.h"
#include "core/own.h"
#include "workspace/workspace.h"

static const char *const contracts[] = { "native", "torch", NULL };
static int contract = CONTRACT_NATIVE;

static const struct field fields[] = {
    FIELD_CHOICE("contract", &contract, contracts,
                 "native (cuda_agent.h) or torch (model_new.py and bindings)"),
};

static enum err_code run(struct args args, int *ret_status, struct err *err)
{
    own_arena a = { 0 };
    struct task task;
    (void)ret_status;
    if (args.n != 2)
        return err_raise(err, ERR_USAGE, "wants a task and a folder, got %d operands", args.n);
    if (task_read(&a, args.v[0], &task, err) != OK ||
        workspace_lay(args.v[1], &task, (enum contract)contract, err) != OK)
        return err->code;
    printf("%s is ready; README.md in it tells how to work there\n", args.v[1]);
    return OK;
}

const struct cmd cmd_workdir = {
    .name = "workdir",
    .operands = "TASK.py DIR",
    .summary = "lay a folder to write a candidate in",
    .details =
        "DIR gets model.py (the task), kernels/, README.md and what the contract freezes; what is\n"
        "in kernels/ stays. A published CUDA-Agent work folder is a torch one, and is graded as it "
        "is.\n\nexample: cuda-agent workdir model.py work --contract torch",
    .fields = fields,
    .n_fields = COUNT(fields),
    .run = run,
};
