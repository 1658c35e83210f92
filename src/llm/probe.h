/* llm/probe.h -- what is asked of an endpoint to know it, and what its answers mean.
 *
 * Pure: probe_ask() says what to send, probe_take() reads what came; between them somebody calls
 * (llm/llm.h). What was found is rows for a person, the compat record, and the window.
 *
 * Includes: core. Errors: none; what an endpoint cannot do is a row.
 * Memory: everything in the arena of the probing.
 */
#ifndef LLM_PROBE_H
#define LLM_PROBE_H

#include "llm/llm.h"

/* In the order in which they are asked; later ones use what earlier ones have learnt. */
enum probe_id {
    PROBE_ANSWER,    /* whole, with temperature and seed */
    PROBE_STREAM,    /* streamed: usage, the end, keep-alive */
    PROBE_REASONING, /* with thinking asked for */
    PROBE_CALL,      /* one tool, one call, streamed: its id, its arguments */
    PROBE_RESULT,    /* the call's result goes back */
    PROBE_PARALLEL,  /* two calls in one answer */
    PROBE_TOKENS,    /* log-probabilities and token ids with tools and stream */
    PROBE_WINDOW,    /* more max_tokens than there can be: the error tells */
    PROBE_MARKER,    /* a long prompt: is its first line still there? */
    PROBES
};

struct probe_row {
    const char *what;
    bool good, needed; /* needed: the agent cannot work without */
    const char *found, *mend;
};

#define PROBE_ROWS_MAX 24
#define PROBE_STEPS_MAX 32

struct probing {
    struct arena *arena;
    enum dialect dialect;
    const char *model; /* "": the one that the list has */
    struct probe_row rows[PROBE_ROWS_MAX];
    size_t n_rows;
    const char *steps[PROBE_STEPS_MAX]; /* what was left out on the way */
    size_t n_steps;
    bool usable;              /* no needed row is bad */
    int64_t window;           /* tokens; 0: unknown */
    struct buf learnt;        /* compat settings that no error teaches: "reasoning=reasoning ..." */
    struct chat_message said; /* the answer to PROBE_CALL */
    bool called;
    bool whole; /* streams with tools do not work: what follows is asked without */
};

void probing_init(struct probing *p, struct arena *a, enum dialect dialect, struct str model);

/* The list of models. Fills the model where the list has but one. *ret_other: the list is of the
 * other dialect's shape. */
void probe_models(struct probing *p, const struct llm_outcome *o, bool *ret_other);

/* llama.cpp: GET /props tells the window. */
bool probe_wants_props(const struct probing *p);
void probe_props(struct probing *p, const struct llm_outcome *o);

/* Whether this probe has a point after what was found. */
bool probe_wanted(const struct probing *p, enum probe_id id, bool thorough);

/* Both outlive the call in the arena. */
void probe_ask(struct probing *p, enum probe_id id, struct chat *ret_chat,
               struct chat_sampling *ret_sampling);

/* Whether this is to be asked without a stream. */
bool probe_whole(const struct probing *p, enum probe_id id);

/* True: ask the same once more. */
bool probe_take(struct probing *p, enum probe_id id, const struct llm_outcome *o);

#endif
