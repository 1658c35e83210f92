/* harness/exam.h -- the examiner: a warm session on one task, and gradings in it.
 *
 * exam_open() starts the worker (boxed Python), loads the task and measures what is
 * not in the store. exam_grade() builds, runs, compares and times one candidate and
 * decides. The examiner links no CUDA, holds the clock that counts and the verdict;
 * seeds and expected values live in the worker, candidate code in the runner.
 *
 * Errors: what the machine did (ERR_WORKER, ERR_CUDA, ERR_SYSTEM, ERR_MISSING) or the
 * task (ERR_TASK). What the candidate did is a verdict.
 */
#ifndef HARNESS_EXAM_H
#define HARNESS_EXAM_H

#include <jansson.h>

#include "build/build.h"
#include "store/store.h"
#include "task/task.h"
#include "task/verdict.h"

struct exam_config {
    enum target target;
    enum preset preset;
    enum against against;          /* the gate of the milestone */
    const char *python;            /* absolute path of a python3 that imports torch */
    int threads;                   /* CPU threads for every arm; 0: all allowed cores */
    int device;                    /* CUDA ordinal */
    int64_t mem_bytes;             /* limit of the runner's box; 0: a share of the machine */
    struct store *store;           /* baselines and verdicts; NULL: keep nothing */
    bool max_autotune;             /* one more PyTorch arm for best */
    bool unsound_too;              /* open a task on which no work passes, too: to look at it */
    void (*say)(const char *line); /* progress, one line at a time; NULL: silence */
};

struct exam;

MUST_USE
enum err_code exam_open(const struct exam_config *cfg, const struct task *task, struct exam **ret,
                        struct err *err);
void exam_close(struct exam *x); /* NULL is fine */

const struct signature *exam_signature(const struct exam *x); /* lives as long as x */

/* The worker's answer to `hello` (docs/worker.md): device with name, arch and uuid, threads,
 * versions. Borrowed, lives as long as x. */
const json_t *exam_hello(const struct exam *x);

/* Soundness facts (docs/worker.md, `check`) and the operator graph (`trace`).
 * New references. */
MUST_USE
enum err_code exam_check(struct exam *x, json_t **ret, struct err *err);
MUST_USE
enum err_code exam_trace(struct exam *x, json_t **ret, struct err *err);

enum grade_step { GRADE_COMPILE, GRADE_VERIFY, GRADE_TIME };

struct grade_options {
    enum grade_step until; /* the last step to do */
    bool quick;            /* timing: no interleaved second look (for tuners) */
    double seconds;        /* bound for the timing step; 0: default */
    int64_t first_ms;      /* what a call has beside its multiple of eager's time; 0: default */
    bool kernels;          /* cuda: sums of kernel times, too (the published workdir's clock) */
};

MUST_USE
enum err_code exam_grade(struct exam *x, const struct candidate *c, const struct grade_options *opt,
                         struct verdict *ret, struct err *err);

/* The same for an object that was built before, in the place of what c builds to; nothing is kept.
 * For measurements of the exam itself, which build one object and change it many times. */
MUST_USE
enum err_code exam_grade_object(struct exam *x, const struct candidate *c, const char *so_path,
                                const struct grade_options *opt, struct verdict *ret,
                                struct err *err);

/* A grading whose candidate is one of PyTorch's own arms ("eager", "compile"), played by the
 * worker, each of its times multiplied by `scale`: what does the clock pay where the gain is known?
 * The arm must have run (exam_baselines). */
struct rehearsal {
    const char *arm;
    double scale;
};
MUST_USE
enum err_code exam_rehearse(struct exam *x, const struct rehearsal *played,
                            const struct grade_options *opt, struct verdict *ret, struct err *err);

/* Times of the PyTorch arms, measured now or taken from the store:
 * {"eager":{"median","lo","hi","windows"},"compile":..., "best":{"name",...}}. New reference. */
MUST_USE
enum err_code exam_baselines(struct exam *x, json_t **ret, struct err *err);

#endif
