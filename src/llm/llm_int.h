/* llm/llm_int.h -- what the files of the transport share. Not for other parts. */
#ifndef LLM_LLM_INT_H
#define LLM_LLM_INT_H

#include <curl/curl.h>

#include "llm/llm.h"

struct llm_endpoint {
    struct llm *loop;
    struct llm_endpoint *next;
    struct arena arena;
    struct llm_spec spec; /* its texts are in the arena, its times are set */
    const char *root, *chat_url, *generate_url;
    char *key; /* heap, wiped; NULL: none */
    struct curl_slist *headers;
    struct compat compat;
    int n_in_flight;
    int64_t ready_ms; /* monotonic: the server asked for quiet until then */
};

/* Headers of an answer that matter, as they came; too long ones are left out. */
struct answer_headers {
    struct str retry_after, retry_after_ms, reset, location;
};

struct llm_call {
    struct llm *loop;
    struct llm_endpoint *endpoint;
    struct llm_ask ask;
    enum llm_state state;
    bool cancelled, unstreamed;
    int n_changes;
    bool degraded; /* the endpoint's record, by this call; it was `before` */
    struct compat before;
    int64_t max_tokens;           /* lowered where they do not fit; 0: as asked */
    int64_t started_ms, ready_ms; /* monotonic; a call that is queued or waits may begin at ready */
    enum fault_kind last_fault;   /* of the try before */
    struct arena arena;           /* outlives the tries */
    struct buf changes;
    struct llm_outcome outcome;

    /* Of one try. */
    struct arena try_arena;
    CURL *easy;
    struct assembly *assembly;         /* of a chat that is answered with 2xx */
    struct buf body;                   /* of everything else */
    char *request;                     /* heap */
    size_t request_len, prompt_tokens; /* the latter estimated */
    bool asked_stream;
    uint64_t id_seed;
    struct compat compat; /* as the request was written */
    struct answer_headers headers;
    int status;
    int64_t sent_ms, status_ms, first_ms, byte_ms; /* 0: not yet */
    int64_t enough_ms; /* the answer is whole; the server need not close */
    bool overfull;     /* we broke the transfer off: the answer passed a bound or is none */
};

struct llm {
    CURLM *multi;
    struct llm_endpoint *endpoints;
    struct llm_call **calls; /* heap, in the order of their start; ended ones until given back */
    size_t n_calls, cap_calls;
    uint64_t random;
    int watch_fd; /* the caller's; -1: none */
};

/* llm_try.c */
MUST_USE
enum err_code try_begin(struct llm_call *c, struct err *err);
/* Fills c->outcome; `late`: no bytes came for too long, or NULL. */
void try_end(struct llm_call *c, CURLcode code, const char *late);
void try_drop(struct llm_call *c);              /* frees what belongs to one try */
int64_t try_deadline(const struct llm_call *c); /* monotonic ms: when to look at it again */
/* Past the deadline: why, or NULL where what came is enough to go by. */
const char *try_late(const struct llm_call *c);

/* llm_endpoint.c */
void endpoint_free(struct llm_endpoint *e);
/* `s` without the key, should a server repeat it. */
struct str endpoint_scrub(const struct llm_endpoint *e, struct arena *a, struct str s);

#endif
