/* grade, compile, verify, profile: one work folder through the exam, up to a step. */
#include <stdio.h>
#include <stdlib.h>

#include "app/cmd.h"
#include "app/session.h"
#include "core/own.h"
#include "sys/clock.h"
#include "sys/file.h"

static struct session_options options;
static struct str task_file;
static int64_t rounds = 1;
static double seconds;
static bool kernels;

static const struct field fields[] = {
    SESSION_FIELDS(options),
    FIELD_TEXT("task", &task_file, "the task's file [WORKDIR/model.py]"),
    FIELD_INT("rounds", &rounds, 1, 1000, "that often in one warm session"),
    FIELD_REAL("seconds", &seconds, 0, 3600, "bound for the timing step; 0: a good one"),
    FIELD_FLAG("kernels", &kernels,
               "cuda: the published workdir's clock, too: sums of kernel times"),
};

struct work {
    struct task task;
    struct candidate candidate;
};

static enum err_code work_read(struct arena *a, const char *dir, enum target target, struct work *w,
                               struct err *err)
{
    const char *file = task_file.len > 0 ? str_z(a, task_file) : path_join(a, dir, "model.py");
    if (task_file.len == 0 && !path_exists(file)) {
        err_raise(err, ERR_USAGE, "'%s' is not there", file);
        return err_hint(err,
                        "a work folder holds model.py and kernels/; or name the task by --task");
    }
    if (task_read(a, file, &w->task, err) != OK ||
        candidate_read(a, dir, target, &w->candidate, err) != OK)
        return err->code;
    if (w->candidate.author == NULL)
        w->candidate.author = "hand";
    return OK;
}

static enum err_code print_verdict(struct arena *a, const struct verdict *v, struct err *err)
{
    struct str text;
    if (options.json) {
        own_json j = verdict_json(v);
        own_mem char *dump = json_dumps(j, rounds > 1 ? JSON_COMPACT : JSON_INDENT(1));
        printf("%s\n", dump ? dump : "{}");
        fflush(stdout); /* a round at a time */
        return OK;
    }
    struct buf b = { .arena = a, .max = 1 << 20 };
    verdict_print(v, &b);
    if (buf_done(&b, &text, err) != OK)
        return err->code;
    printf("%.*s", STR_FMT(text));
    return OK;
}

/* All PyTorch arms beside the candidate: for profile. */
static enum err_code print_arms(struct exam *x, struct err *err)
{
    own_json j = NULL;
    if (exam_baselines(x, &j, err) != OK)
        return err->code;
    size_t i;
    json_t *arm;
    printf("\n  PyTorch's own ways, median us [95%% interval]\n");
    json_array_foreach(json_object_get(j, "arms"), i, arm)
    {
        printf("  %-22s %10.1f  [%.1f, %.1f]\n", json_string_value(json_object_get(arm, "name")),
               json_number_value(json_object_get(arm, "median")),
               json_number_value(json_object_get(arm, "lo")),
               json_number_value(json_object_get(arm, "hi")));
    }
    return OK;
}

static enum err_code grade_rounds(struct arena *a, struct exam *x, const struct work *w,
                                  enum grade_step until, int *ret_status, struct err *err)
{
    own_mem struct verdict *v = calloc(1, sizeof *v);
    if (v == NULL)
        return err_sys(err, "allocate a verdict");
    struct grade_options opt = { .until = until, .seconds = seconds, .kernels = kernels };
    for (int64_t i = 0; i < rounds; i++) {
        int64_t t0 = clock_ms();
        if (exam_grade(x, &w->candidate, &opt, v, err) != OK)
            return err_within(err, "grade");
        if (print_verdict(a, v, err) != OK || exam_keep(x, &w->candidate, &opt, v, err) != OK)
            return err->code;
        if (rounds > 1)
            fprintf(stderr,
                    "  round %lld: %lld ms (build %lld, start %lld, check %lld, time %lld)\n",
                    (long long)i + 1, (long long)(clock_ms() - t0), (long long)v->cost_build_ms,
                    (long long)v->cost_start_ms, (long long)v->cost_check_ms,
                    (long long)v->cost_time_ms);
    }
    *ret_status = verdict_right(v) ? 0 : 1;
    return OK;
}

static enum err_code grade_until(struct args args, enum grade_step until, bool arms,
                                 int *ret_status, struct err *err)
{
    own_arena a = { 0 };
    struct exam_config cfg;
    struct store *store = NULL;
    struct exam *x = NULL;
    own_mem struct work *w = calloc(1, sizeof *w);
    if (w == NULL)
        return err_sys(err, "allocate");
    if (args.n != 1)
        return err_raise(err, ERR_USAGE, "wants one work folder, got %d operands", args.n);
    if (session_config(&a, &options, &cfg, &store, err) != OK)
        return err->code;
    enum err_code code = work_read(&a, args.v[0], cfg.target, w, err);
    if (code == OK)
        code = exam_open(&cfg, &w->task, &x, err);
    if (code == OK)
        code = grade_rounds(&a, x, w, until, ret_status, err);
    if (code == OK && arms && !options.json)
        code = print_arms(x, err);
    exam_close(x);
    store_close(store);
    return code;
}

static enum err_code run_grade(struct args args, int *ret_status, struct err *err)
{
    return grade_until(args, GRADE_TIME, false, ret_status, err);
}

static enum err_code run_compile(struct args args, int *ret_status, struct err *err)
{
    return grade_until(args, GRADE_COMPILE, false, ret_status, err);
}

static enum err_code run_verify(struct args args, int *ret_status, struct err *err)
{
    return grade_until(args, GRADE_VERIFY, false, ret_status, err);
}

static enum err_code run_profile(struct args args, int *ret_status, struct err *err)
{
    return grade_until(args, GRADE_TIME, true, ret_status, err);
}

#define OF_TIMING 2 /* the last fields: compile and verify have no use for them */

#define ROW(variable, text, unused, example)                                                \
    const struct cmd cmd_##variable = {                                                     \
        .name = #variable,                                                                  \
        .operands = "WORKDIR",                                                              \
        .summary = text,                                                                    \
        .details = "WORKDIR holds model.py (the task) and kernels/ (the candidate, "        \
                   "docs/header.md).\nExit status: 0 right (pass, undecided), 1 any other " \
                   "verdict, 2 and up errors.\n\nexample: cuda-agent " example,             \
        .fields = fields,                                                                   \
        .n_fields = COUNT(fields) - (unused),                                               \
        .run = run_##variable                                                               \
    }

ROW(grade, "compile, verify, time and reward one candidate", 0,
    "grade examples/candidates/cpu/linear_sum --target cpu");
ROW(compile, "does the candidate build? (boxed, cached)", OF_TIMING,
    "compile examples/candidates/cpu/linear_sum --target cpu");
ROW(verify, "is it right on every input family? (compiles first)", OF_TIMING,
    "verify work --task model.py");
ROW(profile, "grade, and the times of all of PyTorch's own ways", 0,
    "profile cuda-agent-out/model/best");
