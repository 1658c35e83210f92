/* endpoint/talk.h -- a request as what was said, whatever the dialect.
 *
 * Includes: core. Errors: ERR_FORMAT for a body that is no conversation.
 */
#ifndef ENDPOINT_TALK_H
#define ENDPOINT_TALK_H

#include "core/json.h"

enum api { API_OPENAI, API_ANTHROPIC, API_TOKENS };

enum who { WHO_SYSTEM, WHO_USER, WHO_MODEL, WHO_RESULT };

struct said {
    enum who who;
    struct str text;
    struct str id;       /* the model's: of its first call; a result's: of its call */
    const json_t *calls; /* OpenAI: tool_calls; else NULL */
};

struct talk {
    enum api api;
    const json_t *body;
    struct str model;
    struct said *said;
    size_t n_said;
    size_t n_tools;
    bool stream, want_usage, logprobs, token_ids, parallel, thinking;
    int64_t max_tokens; /* 0: none named */
    int32_t *ids;       /* of the prompt, where they are known */
    size_t n_ids;
    int64_t n_prompt; /* tokens, tools included */
};

MUST_USE
enum err_code talk_read(struct arena *a, enum api api, const json_t *body, struct talk *ret,
                        struct err *err);

/* What the API's documents demand of a history: NULL, or the words of the refusal. */
const char *talk_unpaired(struct arena *a, const struct talk *t);

/* Without what does not fit the window, from the start: what Ollama does without a word. */
void talk_cut(struct talk *t, int64_t window);

/* ---- tokens: up to three bytes each, so that ids can be read back ---- */

#define ID_START (1 << 26)     /* <|im_start|> */
#define ID_END ((1 << 26) + 1) /* <|im_end|> */

/* The id of the token that begins s, and how many bytes it takes. */
int32_t token_take(struct str s, size_t *ret_len);
void tokens_add(struct arena *a, int32_t **ids, size_t *n, struct str s);
int64_t tokens_count(struct str s);
struct str token_text(struct arena *a, int32_t id);

/* What a server puts into words: "<|im_start|>user\n...<|im_end|>\n" and so on, open at the end. */
struct str talk_render(struct arena *a, const struct talk *t);

/* A call as Hermes' template has it. */
void call_render(struct buf *b, const char *name, struct str args);

/* ---- ids of calls ---- */

struct id_form {
    const char *prefix;
    int len; /* behind the prefix */
    bool hex;
};

/* They tell the turn, the place and the number of the call. */
const char *id_make(struct arena *a, const struct id_form *f, size_t turn, size_t place, size_t n);
/* The turn and the place that an id tells; false where it is none of ours. */
bool id_read(struct arena *a, const struct id_form *f, struct str id, size_t *ret_turn,
             size_t *ret_place);

#endif
