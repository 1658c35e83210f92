/* agent/keep.h -- OUT/best: the best verified candidate of all attempts, replaced in one step.
 *
 * The examiner's verdicts decide. Errors: ERR_SYSTEM, ERR_FORMAT (what lies there).
 */
#ifndef AGENT_KEEP_H
#define AGENT_KEEP_H

#include <jansson.h>
#include <stdbool.h>

#include "core/arena.h"
#include "core/err.h"

/* Whether verdict `a` (docs/verdict.md) is of a right candidate that is faster than `b`'s; b NULL:
 * than none. One that was timed is better than one that was not. */
bool verdict_better(const json_t *a, const json_t *b);

struct keep {
    struct arena arena;
    const char *dir; /* OUT/best */
    json_t *best;    /* {"attempt", "candidate", "verdict"}; owned; NULL: none */
};

MUST_USE
enum err_code keep_open(struct keep *k, const char *out, struct err *err);
void keep_close(struct keep *k);

/* Put the candidate of an `eval` event there if it is better; its files are in `objects`. */
MUST_USE
enum err_code keep_offer(struct keep *k, int attempt, const json_t *eval, const char *objects,
                         struct err *err);

#endif
