/* What one compile-verify-time round costs in a warm session.
 *
 *   grade cpu|cuda PYTHON WORKDIR [ROUNDS]
 *
 * Three kinds of round, ROUNDS of each, medians in milliseconds:
 *   new     a source that was never built (a comment differs): build, check, time
 *   built   the same source again: its binary is in the cache
 *   failing a source that does not compile
 * WORKDIR holds model.py and kernels/ as for `cuda-agent grade`.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/own.h"
#include "harness/exam.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/stop.h"

#define ROUNDS_MAX 64

enum kind { KIND_NEW, KIND_BUILT, KIND_FAILING, KINDS };
static const char *const kind_name[] = { "new source", "built before", "failing compile" };

struct cost {
    double wall[ROUNDS_MAX], build[ROUNDS_MAX], start[ROUNDS_MAX], check[ROUNDS_MAX],
        time[ROUNDS_MAX];
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, by_value);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* The candidate with one more line in its first source: built anew, or not to be built. */
static void vary(struct arena *a, const struct candidate *from, enum kind kind, int round,
                 struct candidate *to)
{
    *to = *from;
    const char *line = arena_fmt(a, "// round %d of %lld\n", round, (long long)clock_utc_us());
    if (kind == KIND_FAILING)
        line = arena_fmt(a, "this_does_not_compile round_%d_%lld;\n", round,
                         (long long)clock_utc_us());
    to->file[0].text = str_from(arena_fmt(a, "%s%.*s", line, STR_FMT(from->file[0].text)));
    candidate_seal(to);
}

static enum err_code one_round(struct exam *x, const struct candidate *c, enum kind kind, int at,
                               struct cost *cost, struct err *err)
{
    own_mem struct verdict *v = calloc(1, sizeof *v);
    const struct grade_options opt = { .until = GRADE_TIME };
    if (v == NULL)
        return err_sys(err, "allocate a verdict");
    int64_t t0 = clock_ns();
    if (exam_grade(x, c, &opt, v, err) != OK)
        return err->code;
    cost->wall[at] = (double)(clock_ns() - t0) / 1e6;
    cost->build[at] = (double)v->cost_build_ms;
    cost->start[at] = (double)v->cost_start_ms;
    cost->check[at] = (double)v->cost_check_ms;
    cost->time[at] = (double)v->cost_time_ms;
    enum verdict_status want = kind == KIND_FAILING ? VERDICT_COMPILE_ERROR : VERDICT_PASS;
    if (v->status != want)
        return err_raise(err, ERR_TASK, "round %d of '%s' got %s: %s", at, kind_name[kind],
                         verdict_status_name(v->status), v->reason);
    return OK;
}

static void say(const char *line)
{
    fprintf(stderr, "  %s\n", line);
}

static enum err_code measure(struct exam *x, struct arena *a, const struct candidate *c, int rounds,
                             struct err *err)
{
    static struct candidate varied;
    static struct cost cost;
    if (one_round(x, c, KIND_NEW, 0, &cost, err) != OK) /* measures the baselines, too */
        return err->code;
    printf("| round | wall ms | build | start | check | time |\n|---|---|---|---|---|---|\n");
    for (enum kind kind = 0; kind < KINDS; kind++) {
        for (int i = 0; i < rounds; i++) {
            if (kind == KIND_BUILT)
                varied = *c;
            else
                vary(a, c, kind, i, &varied);
            if (one_round(x, &varied, kind, i, &cost, err) != OK)
                return err->code;
        }
        printf("| %s | %.0f | %.0f | %.0f | %.0f | %.0f |\n", kind_name[kind],
               median(cost.wall, rounds), median(cost.build, rounds), median(cost.start, rounds),
               median(cost.check, rounds), median(cost.time, rounds));
    }
    return OK;
}

int main(int argc, char **argv)
{
    own_arena a = { 0 };
    struct err err = { 0 };
    static struct task task;
    static struct candidate candidate;
    struct exam *x = NULL;
    stop_install();
    int rounds = argc > 4 ? atoi(argv[4]) : 9;
    if (argc < 4 || rounds < 1 || rounds > ROUNDS_MAX) {
        fprintf(stderr, "usage: grade cpu|cuda PYTHON WORKDIR [ROUNDS, at most %d]\n", ROUNDS_MAX);
        return 2;
    }
    struct exam_config cfg = { .target = strcmp(argv[1], "cuda") == 0 ? TARGET_CUDA : TARGET_CPU,
                               .python = argv[2],
                               .against = AGAINST_BEST,
                               .say = say };
    if (task_read(&a, path_join(&a, argv[3], "model.py"), &task, &err) == OK &&
        candidate_read(&a, argv[3], cfg.target, &candidate, &err) == OK &&
        exam_open(&cfg, &task, &x, &err) == OK)
        (void)!measure(x, &a, &candidate, rounds, &err);
    exam_close(x);
    if (err.code != OK)
        fprintf(stderr, "grade: %s\n  %s\n", err.text, err.hint);
    return err.code == OK ? 0 : 2;
}
