/* agent/guard.h -- what an answer amounts to, and whether the model goes in circles.
 *
 * Pure: functions of a `response` event and of the last calls.
 */
#ifndef AGENT_GUARD_H
#define AGENT_GUARD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/str.h"

/*    id, name, whether it cannot be used as an answer */
#define ANSWERS(X)                                                                         \
    X(ANSWER_NONE, "none", false) /* nothing was answered yet */                           \
    X(ANSWER_CALLS, "calls", false)                                                        \
    X(ANSWER_CONTENT, "content", false)  /* words, no call: it may be done */              \
    X(ANSWER_PAUSED, "paused", false)    /* to be sent back as it is */                    \
    X(ANSWER_THINKING, "thinking", true) /* nothing but thoughts */                        \
    X(ANSWER_EMPTY, "empty", true)                                                         \
    X(ANSWER_LENGTH, "length", true) /* cut at the limit of output */                      \
    X(ANSWER_MARKUP, "markup", true) /* a call as text, or one that got lost on the way */ \
    X(ANSWER_BROKEN, "broken", true) /* calls, none with arguments that can be read */     \
    X(ANSWER_REFUSED, "refused", false)                                                    \
    X(ANSWER_OVERFLOW, "overflow", false) /* the conversation does not fit the window */   \
    X(ANSWER_FAILED, "failed", false)     /* the endpoint, past all retries */             \
    X(ANSWER_SUMMARY, "summary", false)   /* of the conversation, asked for by us */

enum answer {
#define X(id, name, bad) id,
    ANSWERS(X)
#undef X
};

#define FORMAT_ERRORS_MAX 4 /* unusable answers in a row end the episode */

enum answer answer_of(const json_t *response);
const char *answer_name(enum answer a);
bool answer_unusable(enum answer a);
/* Whether the answer becomes a message of the conversation. */
bool answer_joins(enum answer a);
/* What the model is told about it; NULL: nothing. */
const char *answer_nudge(enum answer a);

/* One call that was carried out. */
struct action {
    uint64_t call, result; /* hashes of name and arguments; of what it gave */
    uint64_t tree;         /* of the workspace before the turn */
    bool failed;
    bool waits; /* asks how something in the background stands: may repeat longer */
};

#define ACTIONS_MAX 20 /* that are remembered; a word of the person's forgets them */

uint64_t action_hash(struct str a, struct str b);

enum loop { LOOP_NONE, LOOP_NEAR, LOOP_FOUND }; /* near: say so; found: the episode is over */
/* Whether the last of these repeats those before: same call and result (3, 4; 12 more for what
 * waits), same failing call (3, 4), same call on the same files whatever it gives (4, 5), two calls
 * in turn (6, 8). */
enum loop loop_find(const struct action *action, size_t n);

extern const char loop_nudge[];

#endif
