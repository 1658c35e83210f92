/* llm/fault.h -- what went wrong at an endpoint, and whether trying again can help.
 *
 * Pure: from a status, a few headers and an error body (or an error object in the middle of a
 * stream) to one kind. A fault is a result, not an error of ours.
 *
 * Includes: core. Memory: text is in the arena that is passed, valid UTF-8, at most
 * FAULT_TEXT_MAX bytes.
 */
#ifndef LLM_FAULT_H
#define LLM_FAULT_H

#include <jansson.h>

#include "core/str.h"

/*    id, name, whether the same request may be sent again */
#define FAULTS(X)                                                                        \
    X(FAULT_NONE, "none", false)                                                         \
    X(FAULT_TRANSPORT, "transport", true) /* no connection, or a broken one */           \
    X(FAULT_CUT, "cut", true)             /* the stream ended before the answer did */   \
    X(FAULT_TIMEOUT, "timeout", true)                                                    \
    X(FAULT_SERVER, "server", true)         /* 5xx, 408, 409, 425 */                     \
    X(FAULT_OVERLOADED, "overloaded", true) /* 503, 529 */                               \
    X(FAULT_RATE, "rate", true)             /* 429; wait_ms when the server said */      \
    X(FAULT_GARBAGE, "garbage", true)       /* neither events nor JSON */                \
    X(FAULT_QUOTA, "quota", false)          /* no money: for a person to mend */         \
    X(FAULT_AUTH, "auth", false)                                                         \
    X(FAULT_CONTEXT, "context", false)     /* the input alone is too long */             \
    X(FAULT_ROOM, "room", false)           /* input and max_tokens together are */       \
    X(FAULT_PARAMETER, "parameter", false) /* a field is not taken; `param` names it */  \
    X(FAULT_HISTORY, "history", false)     /* calls and results do not pair */           \
    X(FAULT_REQUEST, "request", false)     /* another 4xx */                             \
    X(FAULT_REFUSED, "refused", false)     /* a content filter answered with an error */ \
    X(FAULT_REDIRECT, "redirect", false)   /* 3xx: never followed */                     \
    X(FAULT_TLS, "tls", false)             /* the certificate is not to be trusted */    \
    X(FAULT_LIMIT, "limit", false)         /* the answer passed a bound of ours */       \
    X(FAULT_CANCELLED, "cancelled", false)

enum fault_kind {
#define X(id, name, again) id,
    FAULTS(X)
#undef X
};

#define FAULT_TEXT_MAX 600 /* bytes of a server's words that are kept */

struct fault {
    enum fault_kind kind;
    int status;         /* HTTP; 0: there was none */
    struct str message; /* the server's words, or ours */
    struct str param;   /* the field that is not taken, or "" */
    bool has_wait;      /* the server said how long */
    int64_t wait_ms;
    int64_t n_prompt, n_window; /* tokens, as the server counts them; 0: it did not say */
};

const char *fault_name(enum fault_kind kind);
bool fault_again(enum fault_kind kind);

/* An answer that is not 2xx. Headers are "" when they did not come. */
struct fault_http {
    int status;
    struct str body;
    struct str retry_after;    /* seconds, or a date */
    struct str retry_after_ms; /* milliseconds */
    struct str reset;          /* x-ratelimit-reset-*: "6m0s", seconds, or seconds since 1970 */
    int64_t now_s;             /* since 1970: what a date is compared with */
};

struct fault fault_from_http(struct arena *a, const struct fault_http *h);

/* An `error` member, or a whole object that is one; `status` 200 when it came in a stream. */
struct fault fault_from_json(struct arena *a, const json_t *error, int status);

struct fault fault_ours(struct arena *a, enum fault_kind kind, const char *fmt, ...) FORMAT(3, 4);

#endif
