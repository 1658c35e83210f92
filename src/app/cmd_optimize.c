/* optimize: the main job. Options, wiring of authors and store, what is printed. */
#include <stdio.h>

#include "app/cmd.h"
#include "app/session.h"
#include "core/own.h"
#include "optimize/optimize.h"
#include "playbook/playbook.h"
#include "sys/file.h"

#define SECONDS_DEFAULT 60

static const struct author_ops *const authors[] = { &playbook_author, &flags_author };
static const char *const author_names[] = { "playbook", "flags", NULL };

static struct session_options options;
static int author;
static struct str out;
static double seconds = SECONDS_DEFAULT;
static bool fresh, quiet, no_check;

static const struct field fields[] = {
    FIELD_CHOICE("author", &author, author_names, "who writes the candidates"),
    FIELD_REAL("seconds", &seconds, 1, 1e6, "time for the author"),
    FIELD_TEXT("out", &out, "folder for log and winner [cuda-agent-out/TASK]"),
    FIELD_FLAG("fresh", &fresh, "set the log of an earlier run in that folder aside"),
    FIELD_FLAG("quiet", &quiet, "no progress"),
    FIELD_FLAG("no_check", &no_check, "do not look first whether the task is sound"),
    SESSION_FIELDS(options),
};

static void progress(const char *line)
{
    FILE *to = options.json ? stderr : stdout;
    fprintf(to, "%s\n", line);
    fflush(to);
}

static void store_drop(struct store **s)
{
    store_close(*s);
}

static enum err_code config_fill(struct arena *a, const struct task *task,
                                 struct optimize_config *cfg, struct store **ret_store,
                                 struct err *err)
{
    *cfg = (struct optimize_config){
        .task = task,
        .author = authors[author],
        .out = out.len > 0 ? str_z(a, out) : path_join(a, "cuda-agent-out", task->name),
        .seconds = seconds,
        .fresh = fresh,
        .no_check = no_check,
        .say = quiet ? NULL : progress,
    };
    if (session_config(a, &options, &cfg->exam, ret_store, err) != OK)
        return err->code;
    cfg->exam.say = cfg->say;
    return OK;
}

static enum err_code print_json(json_t *j, struct err *err)
{
    own_json mine = j;
    own_mem char *text = json_dumps(mine, JSON_INDENT(2));
    if (text == NULL || printf("%s\n", text) < 0 || fflush(stdout) != 0)
        return err_sys(err, "print the result");
    return OK;
}

static enum err_code result_print(struct arena *a, const struct optimize_config *cfg,
                                  const struct optimize_result *r, struct err *err)
{
    struct buf b = { .arena = a, .max = (size_t)1 << 20 };
    struct str text;
    if (options.json)
        return print_json(optimize_json(cfg, r), err);
    optimize_print(cfg, r, &b);
    if (buf_done(&b, &text, err) != OK)
        return err->code;
    printf("\n%.*s", STR_FMT(text));
    return OK;
}

static enum err_code run(struct args args, int *ret_status, struct err *err)
{
    own_arena a = { 0 };
    __attribute__((cleanup(store_drop))) struct store *store = NULL;
    __attribute__((cleanup(optimize_result_fini))) struct optimize_result r = { 0 };
    struct optimize_config cfg;
    struct task task;
    if (args.n != 1)
        return err_raise(err, ERR_USAGE, "optimize wants one task file, got %d", args.n);
    if (task_read(&a, args.v[0], &task, err) != OK ||
        config_fill(&a, &task, &cfg, &store, err) != OK || optimize_run(&cfg, &r, err) != OK ||
        result_print(&a, &cfg, &r, err) != OK)
        return err->code;
    *ret_status = r.stopped ? err_exit_status(ERR_INTERRUPT) : r.beats ? 0 : 1;
    return OK;
}

const struct cmd cmd_optimize = {
    .name = "optimize",
    .operands = "TASK.py",
    .summary = "a faster, checked implementation of the Model in TASK.py",
    .details =
        "Runs an author against the exam and keeps the best candidate that it verified, in\n"
        "OUT/best as a work folder with verdict.json. OUT/run.jsonl is the log; the same command\n"
        "resumes from it. Exit status: 0 when a verified candidate beats the gate by more than 5%\n"
        "on the lower bound, 1 when none does, 130 after ^C, else an error.\n\n"
        "example: cuda-agent optimize examples/tasks/cpu/row_softmax.py --target cpu --seconds 30\n"
        "         cuda-agent optimize model.py --author flags   what PyTorch's own switches give\n"
        "         cuda-agent optimize model.py --against paper --json >result.json",
    .fields = fields,
    .n_fields = COUNT(fields),
    .run = run,
};
