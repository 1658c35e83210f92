/* llm/generate.h -- token ids in, token ids and log-probabilities out.
 *
 * For training: the caller renders the template itself, so that a turn's prompt is exactly the
 * tokens that were sampled before, plus new ones. vLLM's /v1/completions and SGLang's /generate.
 *
 * Includes: core. Errors: ERR_FORMAT for a body that is not what was asked for: ids that are
 * missing, another prompt than was sent, as many log-probabilities as there are not ids.
 */
#ifndef LLM_GENERATE_H
#define LLM_GENERATE_H

#include <jansson.h>

#include "core/str.h"

enum generate_api { GENERATE_VLLM, GENERATE_SGLANG };

struct generate {
    const int32_t *prompt;
    size_t n_prompt;
    int64_t max_tokens;
    double temperature, top_p; /* top_p 1: no cut */
    bool has_seed;
    int64_t seed;
    const int32_t *stop; /* ids at which to end; may be none */
    size_t n_stop;
};

enum generate_end { GENERATE_STOP, GENERATE_LENGTH, GENERATE_ABORT };

struct generated {
    enum generate_end end;
    int32_t *ids; /* n of both; the stop id is among them when the server gives it */
    double *logprob;
    size_t n;
    size_t n_clamped; /* log-probabilities that the server could not say: -9999 or less, or null */
    int64_t prompt_tokens, cached_tokens; /* as the server counts; 0: it did not say */
};

/* A new reference. */
json_t *generate_write(enum generate_api api, const char *model, const struct generate *g);

/* Lists in the arena. `g` is what was asked. */
MUST_USE
enum err_code generate_read(struct arena *a, enum generate_api api, const struct generate *g,
                            struct str body, struct generated *ret, struct err *err);

#endif
