/* cuda-agent help: the command table as text, Markdown, completion or man page. */
#include "app/help.h"

static const char *const formats[] = { "text", "markdown", "bash", "man", NULL };
static int format;

static const struct field fields[] = {
    FIELD_CHOICE("format", &format, formats, "what to write"),
};

static enum err_code run(struct args args, int *ret_status, struct err *err)
{
    (void)ret_status;
    static void (*const write[])(FILE *) = { help_all, help_markdown, help_bash, help_man };
    int chosen = format;
    format = 0; /* or the pages would give what was asked for as the default */
    if (args.n == 0) {
        write[chosen](stdout);
        return OK;
    }
    for (int i = 0; cmds[i] != NULL; i++)
        if (strcmp(cmds[i]->name, args.v[0]) == 0) {
            help_command(cmds[i], stdout);
            return OK;
        }
    return err_raise(err, ERR_USAGE, "unknown command '%s'", args.v[0]);
}

const struct cmd cmd_help = {
    .name = "help",
    .operands = "[COMMAND]",
    .summary = "this list, or one command's options",
    .details = "example: cuda-agent help --format bash >/etc/bash_completion.d/cuda-agent",
    .fields = fields,
    .n_fields = COUNT(fields),
    .run = run,
};
