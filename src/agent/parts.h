/* agent/parts.h -- parts of messages as events hold them (docs/agent.md), and back.
 *
 * Errors: ERR_FORMAT for a part that is none.
 */
#ifndef AGENT_PARTS_H
#define AGENT_PARTS_H

#include "llm/assembly.h"

json_t *part_json(const struct chat_part *p);                /* a new reference */
json_t *parts_json(const struct chat_part *parts, size_t n); /* the same for a list */
json_t *parts_text(struct str text);                         /* a list of one text */
json_t *text_json(struct str s);                             /* valid UTF-8, without NUL */
struct str member_text(const json_t *obj, const char *key);  /* borrowed; "" where there is none */
int64_t member_int(const json_t *obj, const char *key); /* 0 where there is none; within 2^53, so
                                                          that sums of a few hold */

/* Texts are copied into the arena. */
MUST_USE
enum err_code parts_read(struct arena *a, const json_t *list, struct chat_part **ret, size_t *ret_n,
                         struct err *err);

/* The body of a `response` event but for what the episode adds (turn, index, tokens, cost). */
json_t *response_json(const struct reply *r);
/* The reply that such an event tells of, in the arena: for a recorded model. */
MUST_USE
enum err_code response_read(struct arena *a, const json_t *event, struct reply *ret,
                            struct err *err);

#endif
