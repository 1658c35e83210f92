/* endpoint/disguise.h -- how each server differs from the documents: one row a server.
 *
 * What each row imitates stands in README.md with the version that was looked at.
 *
 * Includes: core. Errors: none.
 */
#ifndef ENDPOINT_DISGUISE_H
#define ENDPOINT_DISGUISE_H

#include "endpoint/script.h"

struct disguise {
    const char *name;
    bool anthropic;
    struct id_form ids;
    const char *reasoning_key; /* NULL: thinking is counted, not shown */
    bool usage_null;           /* usage: null in each chunk before the last */
    bool usage;                /* in streams, where it is asked for */
    bool timings;              /* llama.cpp's counts */
    bool role_each;            /* each delta has its role */
    bool whole_calls;          /* a call comes in one chunk */
    bool same_index;           /* all calls under index 0 */
    bool stop_with_calls;      /* the reason is "stop", calls or not */
    bool one_call;             /* unless parallel_tool_calls says otherwise */
    bool cuts_prompt;          /* what does not fit is thrown away, from the start */
    bool tokens;               /* token ids, log-probabilities, /v1/completions */
    bool pairs;                /* calls without results are refused */
    const char *comment;       /* while the first byte is awaited; NULL: silence */
};

extern const struct disguise *const disguises[]; /* NULL-terminated */

struct refusal {
    int status;
    const char *type, *message, *param, *code; /* NULL: null */
    int64_t n_prompt, n_window;                /* llama.cpp puts them into the object */
};

/* Whether a request is refused for a field, its size or its history. */
bool disguise_refuses(struct arena *a, const struct disguise *d, const struct script *s,
                      const struct talk *t, struct refusal *ret);

/* The trouble as this server words it. */
struct refusal disguise_trouble(struct arena *a, const struct disguise *d, const struct script *s,
                                const struct talk *t, enum trouble_kind kind);

json_t *disguise_error(const struct disguise *d, const struct refusal *r); /* new reference */
json_t *disguise_models(const struct disguise *d, const struct script *all, size_t n);
json_t *disguise_props(const struct script *first); /* llama.cpp's /props */

#endif
