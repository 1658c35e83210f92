/* optimize/loop.h -- inside of the part: the state of one run and what happens to a candidate.
 *
 * Called only by optimize.c, from one thread.
 */
#ifndef OPTIMIZE_LOOP_H
#define OPTIMIZE_LOOP_H

#include "optimize/keeper.h"
#include "optimize/optimize.h"
#include "sys/runlog.h"

struct loop {
    const struct optimize_config *cfg;
    struct optimize_result *res;
    struct arena *arena;
    struct exam *exam;
    struct runlog log;
    struct keeper keeper;
    struct author_ctx ctx;
    const char *best_dir, *candidates_dir;
    struct verdict *scratch;       /* 40 KB: too much for every frame */
    const struct verdict *written; /* what OUT/best holds, NULL: unknown or nothing */
    int64_t until_ms;
    int n_events; /* attempts in the log, of this and earlier runs */
    bool spent;   /* the budget ended a grade() */
};

/* Fill the keeper from the log of earlier runs. ERR_STATE: another task, author or target. */
MUST_USE
enum err_code loop_resume(struct loop *l, const json_t *events, struct err *err);

/* author_ctx.grade and author_ctx.say */
MUST_USE
enum err_code loop_grade(struct author_ctx *ctx, struct candidate *c, bool quick,
                         struct verdict *ret, struct err *err);
void loop_say(struct author_ctx *ctx, const char *line);

/* Grade the best so far in full until the best one has been. A candidate that fails the
 * second look stops being the best. */
MUST_USE
enum err_code loop_confirm(struct loop *l, struct err *err);

/* Bring OUT/best and the result in line with the keeper. */
MUST_USE
enum err_code loop_settle(struct loop *l, struct err *err);

#endif
