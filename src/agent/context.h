/* agent/context.h -- what the model sees, kept within its window. Pure: events from a state.
 *
 * At 70% of the window old results and superseded files are masked, all in one go, because each
 * change of the history costs the server's cache. Where that does not get below half, the model
 * is asked for a summary; the last resort is a reset to task, table of attempts and the last turns.
 * Task, skill, the person's words and the system's text are never touched.
 *
 * Memory: events are new references, texts in the arena.
 */
#ifndef AGENT_CONTEXT_H
#define AGENT_CONTEXT_H

#include "agent/transcript.h"

#define CONTEXT_TRIGGER 0.70
#define CONTEXT_TARGET 0.50
#define CONTEXT_RECENT 10    /* turns that are never masked or summarised */
#define CONTEXT_RESET_KEEP 3 /* turns that outlive a reset */

double context_share(const struct transcript *t, const struct budget *b);

enum context_need { CONTEXT_FITS, CONTEXT_MASK, CONTEXT_SUMMARY, CONTEXT_RESET, CONTEXT_HOPELESS };
/* What is to be done before the next request. A mask that finds nothing is to be followed by what
 * comes next in the enum. */
enum context_need context_need(const struct transcript *t, const struct budget *b);

/* Bodies of `context` events. Mask: NULL where there is nothing to mask. */
json_t *context_mask(const struct transcript *t);
json_t *context_drop(const struct transcript *t, const char *kind, int64_t keep_turns,
                     struct str summary);

/* A table of what the examiner said, and the best: made from events, not from memory. */
struct str context_table(struct arena *a, const struct transcript *t);

/* The words that ask for a summary. */
extern const char context_summary_prompt[];
#define CONTEXT_SUMMARY_TOKENS 2048

/* "[context 64%, turn 83/200, 41 min left]" from 60% of the window, or 80% of a budget, on;
 * else "". `now` has the turn that is going on; `more`: bytes that are not in the state yet. */
struct str context_trailer(struct arena *a, const struct transcript *t, const struct budget *b,
                           const struct totals *now, size_t more);

#endif
