/* agent/model.h -- who answers: endpoints, or a recorded log.
 *
 * Both sides are real: `--model-from-log` runs an episode again without a model, and so do tests.
 *
 * Includes: core, sys, llm. Errors: those of llm/llm.h; ERR_FORMAT for a log that is none. What a
 * model does wrong is in its outcome.
 */
#ifndef AGENT_MODEL_H
#define AGENT_MODEL_H

#include "llm/llm.h"

struct model;

/* `chat` and `sampling` must outlive the ask. */
struct model_ask {
    const struct chat *chat;
    const struct chat_sampling *sampling;
    int64_t turn;
    bool fallback; /* ask the second endpoint */
    uint64_t tag;  /* the caller's own */
};

struct model_answer {
    uint64_t tag;
    const struct llm_outcome *outcome; /* NULL: none came */
    void *own;
};

struct model_ops {
    enum err_code (*start)(struct model *m, const struct model_ask *ask, void **ret_handle,
                           struct err *err);
    /* Waits at most wait_ms for an answer, or until watch_fd is readable (-1: none). */
    enum err_code (*step)(struct model *m, int64_t wait_ms, int watch_fd, struct model_answer *ret,
                          struct err *err);
    void (*cancel)(struct model *m, void *handle); /* it is answered soon, with FAULT_CANCELLED */
    struct llm_progress (*progress)(const struct model *m, const void *handle);
    void (*answer_free)(struct model *m, struct model_answer *answer);
    void (*close)(struct model *m);
    bool (*has_fallback)(const struct model *m);
};

struct model {
    const struct model_ops *ops;
};

/* The loop of its own; fallback: NULL for none. */
MUST_USE
enum err_code model_open_llm(const struct llm_spec *endpoint, const struct llm_spec *fallback,
                             struct model **ret, struct err *err);

/* The answer to turn n is the log's to turn n; one log serves any number of episodes. wait_ms: how
 * long an answer takes. */
MUST_USE
enum err_code model_open_log(const char *path, int64_t wait_ms, struct model **ret,
                             struct err *err);

#endif
