/* endpoint/answer.h -- a turn as the bytes of an HTTP answer, with the times at which they go out.
 *
 * Includes: core. Memory: in the arena that is passed. Errors: none.
 */
#ifndef ENDPOINT_ANSWER_H
#define ENDPOINT_ANSWER_H

#include "endpoint/disguise.h"

/* Bytes up to `end` go out, `wait_ms` after those before them. */
struct piece {
    size_t end;
    int64_t wait_ms;
};

enum farewell { FAREWELL_KEEP, FAREWELL_CLOSE, FAREWELL_RESET, FAREWELL_HANG };

struct answer {
    struct arena *arena;
    struct buf bytes;
    struct piece *pieces;
    size_t n_pieces, cap_pieces;
    enum farewell farewell;
    bool chunked;
    int64_t pace_ms;    /* between events */
    int64_t n_events;   /* so far */
    int64_t events_max; /* a trouble comes after so many; -1: none */
};

/* What is to be told. */
struct telling {
    const struct disguise *disguise;
    const struct script *script;
    const struct talk *talk;
    const struct turn *turn;
    size_t place;
    struct str text; /* the turn's, with what was caught */
    struct str thinking;
    size_t n_calls;
    struct str last_args; /* of the last call; cut where max_tokens ends */
    enum end end;
    int64_t input, cached, output, reasoning; /* tokens */
    int32_t *ids;                             /* of all that is said */
    size_t n_ids;
};

void answer_json(struct answer *ans, int status, const char *headers,
                 json_t *body); /* takes body */
void answer_text(struct answer *ans, int status, const char *type, struct str body);

/* The turn, whole or streamed, with the trouble that strikes (NULL: none). */
void answer_turn(struct answer *ans, const struct telling *tell, const struct trouble *trouble);

/* Below: for the writers of each dialect. */
void answer_begin_stream(struct answer *ans, const struct telling *tell);
void answer_event(struct answer *ans, const char *name, json_t *data); /* takes data */
void answer_raw(struct answer *ans, struct str event);
bool piece_take(enum pieces how, struct str *rest, struct str *ret);
const char *tell_call_id(struct arena *a, const struct telling *tell, size_t n);
struct str tell_args(const struct telling *tell, size_t n);
void openai_tell(struct answer *ans, const struct telling *tell);
json_t *openai_whole(struct arena *a, const struct telling *tell);
json_t *tokens_whole(struct arena *a, const struct telling *tell);
void anthropic_tell(struct answer *ans, const struct telling *tell);
json_t *anthropic_whole(struct arena *a, const struct telling *tell);

#endif
