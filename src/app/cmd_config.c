/* cuda-agent config show: every option, its value and where the value comes from. */
#include <stdio.h>

#include "app/config.h"

static bool origin_too;

static const struct field fields[] = {
    FIELD_FLAG("origin", &origin_too, "also tell where each value comes from"),
};

/* The variable still holds its default: no command but this one has been configured. */
static const char *default_of(const struct field *f, char room[64])
{
    switch (f->kind) {
    case FIELD_IS_FLAG:
        return *f->to.flag ? "true" : "false";
    case FIELD_IS_INT:
        snprintf(room, 64, "%lld", (long long)*f->to.integer);
        return room;
    case FIELD_IS_REAL:
        snprintf(room, 64, "%g", *f->to.real);
        return room;
    case FIELD_IS_TEXT:
        snprintf(room, 64, "%.*s", STR_FMT(*f->to.text));
        return f->to.text->len > 0 ? room : "-";
    case FIELD_IS_CHOICE:
        return f->choices[*f->to.choice];
    }
    return "";
}

static void show(const struct cmd *cmd, const struct field *f, const char *value,
                 const char *origin)
{
    char name[96], room[64];
    snprintf(name, sizeof name, "%s.%s", cmd->name, f->name);
    printf("%-28s %-24s%s%s\n", name, value ? value : default_of(f, room), origin_too ? "  " : "",
           origin_too ? origin : "");
}

static enum err_code run(struct args args, int *ret_status, struct err *err)
{
    (void)ret_status;
    if (args.n != 1 || strcmp(args.v[0], "show") != 0)
        return err_raise(err, ERR_USAGE, "wants 'show'");
    for (int i = 0; cmds[i] != NULL; i++)
        for (size_t k = 0; k < cmds[i]->n_fields; k++) {
            const char *origin, *value;
            if (config_origin(&cmds[i]->fields[k], &origin, &value, err) != OK)
                return err->code;
            show(cmds[i], &cmds[i]->fields[k], value, origin);
        }
    return OK;
}

const struct cmd cmd_config = {
    .name = "config",
    .operands = "show",
    .summary = "show the options that files and environment set",
    .details =
        "Order: flag, environment CUDA_AGENT_<OPTION>, cuda-agent.yaml of the project (found\n"
        "upward), ~/.config/cuda-agent/config.yaml, default.\n\n"
        "example: cuda-agent config show --origin",
    .fields = fields,
    .n_fields = COUNT(fields),
    .run = run,
};
