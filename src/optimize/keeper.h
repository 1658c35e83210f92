/* optimize/keeper.h -- all verdicts of a run and the best among them.
 *
 * The harness's verdicts decide, never an author's word. One entry a candidate: a later
 * verdict takes the place of an earlier one. Memory: the arena's.
 */
#ifndef OPTIMIZE_KEEPER_H
#define OPTIMIZE_KEEPER_H

#include <stdbool.h>

#include "task/verdict.h"

struct kept {
    char hash[HASH_HEX];
    const struct verdict *v;
    bool full; /* graded with the second look, by this process */
};

struct keeper {
    struct arena *arena;
    struct kept *all;
    size_t n, cap;
};

void keeper_add(struct keeper *k, const struct verdict *v, bool full);

/* NULL when this candidate was never graded. Valid until the next keeper_add. */
const struct kept *keeper_find(const struct keeper *k, const char *hash);

/* The passing candidate with the shortest time; only among full ones if asked. NULL: none. */
enum keeper_among { AMONG_ALL, AMONG_FULL };
const struct kept *keeper_best(const struct keeper *k, enum keeper_among among);

/* Forget what was measured on another device or with another PyTorch than `now`;
 * returns how many went. */
size_t keeper_forget_foreign(struct keeper *k, const struct verdict *now);

#endif
