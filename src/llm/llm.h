/* llm/llm.h -- calls to model endpoints, many at a time, in one loop.
 *
 * An endpoint is one address and model with its key, its compat record and its own cap on calls in
 * flight. llm_start() queues a call; llm_step() moves all of them and hands back one that ended.
 * A call goes through connecting, first byte, bytes; it is tried again after what may pass
 * (llm/fault.h), with full-jitter back-off or after the time that the server named; it goes one
 * rung down the ladder where a field is refused, asks once without a stream where the arguments of
 * a tool call came broken, and with fewer max_tokens where only those did not fit.
 *
 * No host but the endpoint's is contacted: redirects are faults, proxies are used only when named,
 * certificates are checked, .netrc is not read. The key stands in a header and nowhere else: not
 * in argv, a log, or a text of a fault.
 *
 * Includes: core, sys.
 * Threads:  one at a time per loop; llm_wake() from any, also from a signal handler.
 * Errors:   ERR_CONFIG (address, key, settings), ERR_SYSTEM (libcurl refuses to work). What the
 *           endpoint did, and a request that cannot be written, is in the outcome.
 */
#ifndef LLM_LLM_H
#define LLM_LLM_H

#include "llm/compat.h"
#include "llm/generate.h"

struct llm;          /* the loop */
struct llm_endpoint; /* belongs to its loop */
struct llm_call;

/* 0 means the default that stands beside it. */
struct llm_times {
    int64_t connect_ms; /* 10,000 */
    int64_t
        first_byte_ms; /* 60,000, and 2 ms for each token of the prompt, doubled at each retry */
    int64_t idle_ms;   /* 120,000 between two bytes, comments included */
    int64_t token_ms;  /* 100 more to the first byte for each token asked for without a stream */
    int64_t error_body_ms;  /* 5,000 for all of the body of an error */
    int64_t total_ms;       /* 3,600,000 for one try */
    int64_t backoff_ms;     /* 1,000: the first wait is up to that, each next up to double */
    int64_t backoff_max_ms; /* 60,000 */
    int64_t wait_max_ms;    /* 300,000: no server may make us wait longer */
};

struct llm_spec {
    const char *base_url; /* "http://host:8000", with or without "/v1" */
    const char *model;
    enum dialect dialect;
    enum generate_api generate_api;
    const char *key_env;        /* name of the variable that holds the key; or */
    const char *key_file;       /* its file; both NULL: no key */
    const char *proxy;          /* NULL: none, whatever the environment says */
    const char *ca_file;        /* NULL: the system's */
    const char *settings;       /* compat_set() over what is known; NULL: none */
    const char *const *headers; /* more, "Name: value", NULL-terminated; NULL: none */
    int in_flight_max;          /* 0: 8 */
    int tries_max;              /* 0: 8 */
    size_t answer_max;          /* bytes; 0: ASSEMBLY_BYTES_MAX */
    struct llm_times times;
};

MUST_USE
enum err_code llm_open(struct llm **ret, struct err *err);
void llm_close(struct llm *l); /* with its endpoints; its calls are cancelled and freed */

/* The spec is copied. The key is read now. */
MUST_USE
enum err_code llm_endpoint_add(struct llm *l, const struct llm_spec *spec,
                               struct llm_endpoint **ret, struct err *err);

/* The record as it stands, the ladder's steps included: to be kept between runs. */
struct compat llm_endpoint_compat(const struct llm_endpoint *e);

/* Either `chat` with `sampling`, or `generate`, or `path`. All of it must outlive the call. */
struct llm_ask {
    struct llm_endpoint *endpoint;
    const struct chat *chat;
    const struct chat_sampling *sampling;
    const struct generate *generate;
    const char *path; /* what GET has behind the address: "/v1/models" */
    bool whole;       /* a chat without a stream, whatever the endpoint takes */
    uint64_t tag;     /* the caller's own */
};

MUST_USE
enum err_code llm_start(struct llm *l, const struct llm_ask *ask, struct llm_call **ret,
                        struct err *err);

/* Move all calls, waiting at most wait_ms for something to happen. *ret_ended is a call that ended,
 * or NULL. An ended call is given back once and is then the caller's to free. */
MUST_USE
enum err_code llm_step(struct llm *l, int64_t wait_ms, struct llm_call **ret_ended,
                       struct err *err);

/* It ends at once, with FAULT_CANCELLED, at the next llm_step. Harmless after its end. */
void llm_cancel(struct llm_call *c);

/* End a wait of llm_step early. */
void llm_wake(struct llm *l);

/* A descriptor of the caller's (an epoll's, say) whose readability ends a wait early; -1: none. */
void llm_watch(struct llm *l, int fd);

/* Only of a call that llm_step gave back. */
void llm_call_free(struct llm_call *c);

struct llm_outcome {
    struct fault fault;         /* FAULT_NONE: the answer stands */
    struct reply reply;         /* of a chat */
    struct generated generated; /* of tokens */
    struct str body;            /* of a GET, when it is good */
    int64_t n_window;           /* tokens, where an error on the way told them; 0: none did */
    bool reused;                /* the last try went over a connection that was there */
    int n_tries;
    int64_t wall_ms;       /* from llm_start to the end, waits included */
    int64_t first_byte_ms; /* of the last try, from its request; -1: none came */
    struct str changes;    /* what the ladder left out on the way, one a line; "" */
};

/* Of a call that llm_step gave back; lives as long as the call. */
const struct llm_outcome *llm_call_outcome(const struct llm_call *c);
uint64_t llm_call_tag(const struct llm_call *c);

enum llm_state { LLM_QUEUED, LLM_IN_FLIGHT, LLM_WAITING, LLM_ENDED };

/* To show a person: the state, the wait that is left, the text so far (until the next step). */
struct llm_progress {
    enum llm_state state;
    int64_t wait_ms;
    enum fault_kind last_fault;
    struct str text;
};
struct llm_progress llm_call_progress(const struct llm_call *c);

#endif
