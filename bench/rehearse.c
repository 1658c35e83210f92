/* What does the clock pay where the truth is known? PyTorch's own eager code is graded as if it
 * were a candidate, its times divided by a known gain: by 1 nothing may be paid (A/A), by 1.08 the
 * milestone of 5% should be, and near the border the same decision should come again.
 *
 *   bench_rehearse cpu|cuda PYTHON TASK [--count N] [--gains 1,1.03,1.07,1.08] [--log FILE]
 *
 * Each gain is graded N times, in turns; the worker and with it the baselines are new after every
 * FRESH turns. What the log holds already is not done again.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/own.h"
#include "harness/exam.h"
#include "reward/reward.h"
#include "sys/file.h"
#include "sys/stop.h"

#define GAINS_MAX 8
#define FRESH 25
#define COUNT_MAX 20000

struct gain {
    double g;
    int n, paid, milestone; /* cleared the border; milestone above 1 */
    double ratio[COUNT_MAX];
    bool decision[COUNT_MAX];
};

struct run {
    struct arena a;
    struct exam_config cfg;
    struct task task;
    struct gain gain[GAINS_MAX];
    int n_gains;
    int64_t count;
    FILE *log;
    struct exam *x;
};

static void add(struct gain *g, double ratio, double lo, int milestone)
{
    if (g->n >= COUNT_MAX)
        return;
    g->ratio[g->n] = ratio;
    g->decision[g->n] = lo > MILESTONE_RATIO;
    g->paid += lo > MILESTONE_RATIO;
    g->milestone += milestone > 1;
    g->n++;
}

static struct gain *gain_of(struct run *r, double g)
{
    for (int i = 0; i < r->n_gains; i++)
        if (fabs(r->gain[i].g - g) < 1e-9)
            return &r->gain[i];
    return NULL;
}

static enum err_code log_open(struct run *r, const char *path, struct err *err)
{
    struct str text = { 0 }, line = { 0 };
    if (path_exists(path) && file_read(&r->a, path, 64 << 20, &text, err) != OK)
        return err->code;
    while (str_cut(&text, '\n', &line)) {
        double g, ratio, lo, hi, us;
        int milestone;
        if (sscanf(str_z(&r->a, line), "%lf %lf %lf %lf %d %lf", &g, &ratio, &lo, &hi, &milestone,
                   &us) == 6 &&
            gain_of(r, g) != NULL)
            add(gain_of(r, g), ratio, lo, milestone);
    }
    r->log = fopen(path, "a");
    return r->log != NULL ? OK : err_sys(err, "open '%s'", path);
}

static enum err_code one(struct run *r, struct gain *g, struct verdict *v, struct err *err)
{
    const struct rehearsal played = { "eager", 1 / g->g };
    const struct grade_options opt = { .until = GRADE_TIME };
    if (exam_rehearse(r->x, &played, &opt, v, err) != OK)
        return err->code;
    add(g, v->vs_eager.median, v->vs_eager.lo, v->reward_milestone);
    fprintf(r->log, "%g %.5f %.5f %.5f %d %.2f\n", g->g, v->vs_eager.median, v->vs_eager.lo,
            v->vs_eager.hi, v->reward_milestone, v->time_us[ARM_CANDIDATE].median);
    fflush(r->log);
    return OK;
}

static bool enough(const struct run *r)
{
    for (int i = 0; i < r->n_gains; i++)
        if (r->gain[i].n < r->count)
            return false;
    return true;
}

static enum err_code all(struct run *r, struct err *err)
{
    own_mem struct verdict *v = calloc(1, sizeof *v);
    if (v == NULL)
        return err_sys(err, "allocate a verdict");
    for (int turn = 0; !enough(r); turn++) {
        if (turn % FRESH == 0) {
            exam_close(r->x);
            r->x = NULL;
            if (exam_open(&r->cfg, &r->task, &r->x, err) != OK)
                return err->code;
        }
        for (int i = 0; i < r->n_gains; i++)
            if (r->gain[i].n < r->count &&
                (stop_check(err) != OK || one(r, &r->gain[i], v, err) != OK))
                return err->code;
    }
    return OK;
}

/* Consecutive gradings of the same thing that decide alike. */
static double repeated(const struct gain *g)
{
    int same = 0, pairs = g->n / 2;
    for (int i = 0; i < pairs; i++)
        same += g->decision[2 * i] == g->decision[2 * i + 1];
    return pairs > 0 ? 100.0 * same / pairs : 0;
}

static void report(const struct run *r)
{
    printf("| true gain | gradings | milestone above 1 | 5%% granted | same decision in pairs | "
           "ratio, "
           "mean | its variation |\n|---|---|---|---|---|---|---|\n");
    for (int i = 0; i < r->n_gains; i++) {
        const struct gain *g = &r->gain[i];
        double sum = 0, sq = 0;
        for (int k = 0; k < g->n; k++)
            sum += g->ratio[k], sq += g->ratio[k] * g->ratio[k];
        double mean = g->n ? sum / g->n : 0, var = g->n ? sq / g->n - mean * mean : 0;
        printf("| %g | %d | %d | %.1f%% | %.1f%% | %.4f | %.2f%% |\n", g->g, g->n, g->milestone,
               g->n ? 100.0 * g->paid / g->n : 0, repeated(g), mean,
               mean > 0 ? 100 * sqrt(var > 0 ? var : 0) / mean : 0);
    }
}

static enum err_code gains_read(struct run *r, const char *text, struct err *err)
{
    struct str rest = str_from(text), part = { 0 };
    r->n_gains = 0;
    while (r->n_gains < GAINS_MAX && str_cut(&rest, ',', &part))
        if (str_real(part, 0.1, 100, &r->gain[r->n_gains++].g, err) != OK)
            return err->code;
    return OK;
}

static enum err_code options(struct run *r, int argc, char **argv, const char **log,
                             struct err *err)
{
    for (int i = 4; i + 1 < argc; i += 2) {
        enum err_code code = OK;
        if (strcmp(argv[i], "--count") == 0)
            code = str_int(str_from(argv[i + 1]), 1, COUNT_MAX, &r->count, err);
        else if (strcmp(argv[i], "--gains") == 0)
            code = gains_read(r, argv[i + 1], err);
        else if (strcmp(argv[i], "--log") == 0)
            *log = argv[i + 1];
        else
            code = err_raise(err, ERR_USAGE, "'%s'", argv[i]);
        if (code != OK)
            return code;
    }
    return OK;
}

int main(int argc, char **argv)
{
    struct run *r = calloc(1, sizeof *r);
    struct err err = { 0 };
    const char *log = "/dev/null";
    if (r == NULL || argc < 4 || argc % 2 != 0) {
        fprintf(stderr, "usage: bench_rehearse cpu|cuda PYTHON TASK [--count N] [--gains "
                        "1,1.03,1.07,1.08] [--log FILE]\n");
        return 2;
    }
    r->cfg =
        (struct exam_config){ .target = strcmp(argv[1], "cuda") == 0 ? TARGET_CUDA : TARGET_CPU,
                              .python = argv[2] };
    r->count = 20;
    stop_install();
    enum err_code code = gains_read(r, "1,1.03,1.07,1.08", &err);
    if (code == OK)
        code = options(r, argc, argv, &log, &err);
    if (code == OK)
        code = task_read(&r->a, argv[3], &r->task, &err);
    if (code == OK)
        code = log_open(r, log, &err);
    if (code == OK)
        code = all(r, &err);
    exam_close(r->x);
    report(r);
    if (code != OK)
        fprintf(stderr, "rehearse: %s\n", err.text);
    return code == OK ? 0 : err_exit_status(code);
}
