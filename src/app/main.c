/* The one program: find the command's row, bind its options, run it. Wiring only. */
#include <ctype.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <jansson.h>

#include "app/cmd.h"
#include "app/config.h"
#include "app/help.h"
#include "core/own.h"
#include "sys/stop.h"

extern const struct cmd cmd_grade, cmd_compile, cmd_verify, cmd_profile, cmd_workdir, cmd_task,
    cmd_doctor, cmd_config, cmd_help, cmd_optimize, cmd_replay;

const struct cmd *const cmds[] = { &cmd_optimize, &cmd_replay,  &cmd_grade,   &cmd_compile,
                                   &cmd_verify,   &cmd_profile, &cmd_workdir, &cmd_task,
                                   &cmd_doctor,   &cmd_config,  &cmd_help,    NULL };

static const struct cmd *cmd_find(struct str name)
{
    for (int i = 0; cmds[i] != NULL; i++)
        if (str_eq(str_from(cmds[i]->name), name))
            return cmds[i];
    return NULL;
}

static bool has(int argc, char **argv, const char *flag)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], flag) == 0)
            return true;
    return false;
}

/* JSON holds UTF-8 only; a path in a text may be any bytes. */
static json_t *json_of(const char *text)
{
    json_t *j = json_string(text);
    if (j != NULL)
        return j;
    own_arena tmp = { 0 };
    char *plain = (char *)(uintptr_t)str_z(&tmp, str_from(text));
    for (char *c = plain; *c != '\0'; c++)
        if (!isascii((unsigned char)*c))
            *c = '?';
    return json_string(plain);
}

static void print_error(const struct err *err, bool json)
{
    if (json) {
        own_json j =
            json_pack("{s:s,s:{s:s,s:o,s:o}}", "schema", "cuda-agent/error/1", "error", "code",
                      err_name(err->code), "text", json_of(err->text), "hint", json_of(err->hint));
        own_mem char *text = j ? json_dumps(j, JSON_INDENT(1)) : NULL;
        printf("%s\n", text ? text : "{}");
    }
    fprintf(stderr, "cuda-agent: %s\n", err->text);
    if (err->hint[0] != '\0')
        fprintf(stderr, "  hint: %s\n", err->hint);
}

static enum err_code unknown(const char *name, struct err *err)
{
    err_raise(err, ERR_USAGE, "unknown command '%s'", name);
    const char *near = help_nearest(name);
    return near ? err_hint(err, "did you mean '%s'? 'cuda-agent help' lists the commands", near)
                : err_hint(err, "'cuda-agent help' lists the commands");
}

static enum err_code run(int argc, char **argv, int *ret_status, struct err *err)
{
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        help_all(stdout);
        return OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("cuda-agent %s\n", CA_VERSION_TEXT);
        return OK;
    }
    const struct cmd *cmd = cmd_find(str_from(argv[1]));
    if (cmd == NULL)
        return unknown(argv[1], err);
    if (has(argc - 1, argv + 1, "--help") || has(argc - 1, argv + 1, "-h")) {
        help_command(cmd, stdout);
        return OK;
    }
    struct args args = { argc - 2, argv + 2 };
    if (config_apply(cmd, err) != OK || args_options(&args, cmd->fields, cmd->n_fields, err) != OK)
        return err->code;
    enum err_code code = cmd->run(args, ret_status, err);
    if (code == ERR_USAGE && err->hint[0] == '\0')
        err_hint(err, "'cuda-agent %s --help' has options and examples", cmd->name);
    return code;
}

/* A result that did not reach its file is no result: a full disk must not exit 0. */
static enum err_code written(struct err *err)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return OK;
    struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };
    if (poll(&out, 1, 0) == 1 && (out.revents & POLLERR)) { /* `| head` has seen enough */
        signal(SIGPIPE, SIG_DFL);
        raise(SIGPIPE);
    }
    return err_raise(err, ERR_SYSTEM, "standard output did not take the whole result: %s",
                     fcntl(STDOUT_FILENO, F_GETFD) < 0 ? "it is closed" : "is its disk full?");
}

int main(int argc, char **argv)
{
    struct err err = { 0 };
    int status = 0;
    stop_install();
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc < 2) {
        help_all(stderr);
        return err_exit_status(ERR_USAGE);
    }
    if (run(argc, argv, &status, &err) != OK || written(&err) != OK) {
        print_error(&err, has(argc, argv, "--json"));
        return err_exit_status(err.code);
    }
    return status;
}
