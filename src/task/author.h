/* task/author.h -- the seam between the loop and whoever writes candidates.
 *
 * Two real sides: playbook (built in) and flags (the null author); an LLM comes next.
 */
#ifndef TASK_AUTHOR_H
#define TASK_AUTHOR_H

#include <jansson.h>
#include <stdbool.h>

#include "task/task.h"
#include "task/verdict.h"

struct author_ctx {
    const struct task *task;
    const struct signature *sig;
    const json_t *graph; /* docs/graph.md; NULL where the model could not be traced */
    enum target target;
    enum preset preset;
    const char *cuda_arch; /* "90a", or NULL */
    const char *device_name;
    int threads;
    double seconds_left; /* refreshed by grade() */
    /* Grade one candidate (the seam to the harness). quick: no interleaved second look.
     * The loop behind it keeps the best verified one. */
    enum err_code (*grade)(struct author_ctx *ctx, struct candidate *c, bool quick,
                           struct verdict *ret, struct err *err);
    void (*say)(struct author_ctx *ctx, const char *line); /* progress for the person */
    void *loop;                                            /* belongs to whoever made the ctx */
};

struct author_ops {
    const char *name;
    const char *help;
    enum err_code (*run)(struct author_ctx *ctx, struct err *err);
};

#endif
