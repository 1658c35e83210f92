/* workdir: lay a folder to work in by hand or by an agent. */
#include <stdio.h>

#include "app/cmd.h"
#include "core/own.h"
#include "workspace/workspace.h"

static struct str contract = { "native", 6 };

static const struct field fields[] = {
    FIELD_TEXT("contract", &contract, "native (cuda_agent.h) or torch (model_new.py and bindings)"),
};

static enum err_code contract_of(enum contract *ret, struct err *err)
{
    for (int c = 0; c < CONTRACTS; c++)
        if (str_eq(contract, str_from(contract_name((enum contract)c)))) {
            *ret = (enum contract)c;
            return OK;
        }
    return err_raise(err, ERR_USAGE, "--contract wants native or torch, got '%.*s'",
                     STR_FMT(contract));
}

static enum err_code run(struct args args, int *ret_status, struct err *err)
{
    own_arena a = { 0 };
    struct task task;
    enum contract which = CONTRACT_NATIVE;
    (void)ret_status;
    if (args.n != 2)
        return err_raise(err, ERR_USAGE, "wants a task and a folder, got %d operands", args.n);
    if (contract_of(&which, err) != OK || task_read(&a, args.v[0], &task, err) != OK ||
        workspace_lay(args.v[1], &task, which, err) != OK)
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
