/* llm/request.h -- a conversation as the body of a request.
 *
 * Pure. The conversation is normalised (chat_normalise) and cleaned (valid UTF-8, no NUL) on the
 * way; what an endpoint does not take is left out.
 *
 * Includes: core. Errors: ERR_FORMAT for a tool whose schema is not a JSON object.
 */
#ifndef LLM_REQUEST_H
#define LLM_REQUEST_H

#include "llm/compat.h"

struct request {
    enum dialect dialect;
    const char *model;
    const struct compat *compat;
    const struct chat *chat;
    const struct chat_sampling *sampling;
    bool unstreamed; /* no stream, whatever compat says */
};

/* A new reference. */
MUST_USE
enum err_code request_write(const struct request *r, json_t **ret, struct err *err);

/* Below: for the two writers. */
json_t *request_text(struct str s); /* cleaned */

/* Arguments as an object: what is not one stands under the key "unparsed". */
json_t *request_args(struct str args);

struct ids {
    struct arena *arena;
    enum compat_ids form;
    struct str *used; /* where each must differ from all before it */
    size_t n_used, cap;
    struct str *turn; /* of the last assistant's calls, in order: its results follow */
    size_t n_turn;
};

/* Ids of the calls of one assistant's message, in the endpoint's form, into ids->turn. */
void ids_turn(struct ids *ids, const struct chat_message *m);

json_t *request_openai(struct arena *tmp, const struct request *r, const struct chat *chat);
json_t *request_anthropic(struct arena *tmp, const struct request *r, const struct chat *chat);

#endif
