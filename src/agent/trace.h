/* agent/trace.h -- the event log of an episode (docs/agent.md), read back.
 *
 * Pure: events to turns and messages. Events that a `resumed` drops are left out, unknown
 * events and members are passed over; a member of another type than the contract's counts as
 * absent. Nothing here trusts what a log says: texts are a model's and its programs'.
 *
 * Includes: core, sys, llm. Errors: ERR_FORMAT (a line that is none, another schema), which
 * names the line; trace_open() also ERR_SYSTEM, ERR_LIMIT.
 */
#ifndef AGENT_TRACE_H
#define AGENT_TRACE_H

#include <jansson.h>

#include "core/own.h"
#include "llm/chat.h"

#define TRACE_SCHEMA "cuda-agent/episode/1"
#define TRACE_LOG "events.jsonl"
#define TRACE_TOKENS "tokens.bin"

/* What happened from the end of the turn before to this one's own end. */
struct trace_turn {
    bool numbered; /* false: the tail of a log, in which no turn began */
    int64_t turn;
    size_t first, n;                                    /* its events, in trace.event */
    const json_t *request, *response, *end, *files_now; /* the last of each; NULL */
};

struct trace_message {
    int64_t index;
    size_t at; /* where it joined: of trace.event */
    enum chat_role role;
    const char *kind; /* "task", "nudge", ...; "answer", "results" */
    struct chat_message chat;
};

struct trace {
    json_t *all; /* every event: a reference */
    const json_t **event;
    size_t n_events; /* those that count */
    size_t n_dropped;
    bool torn;                      /* the last line was half a one */
    const json_t *start, *finished; /* run_start, run_end; NULL */
    struct trace_turn *turn;
    size_t n_turns;
    struct trace_message *message;
    size_t n_messages;
    const json_t *best_eval; /* the last that was the best so far; NULL */
    const char *folder;      /* of the log; NULL: no objects, no tokens */
};

/* Memory in the arena; takes no reference of `events` but its own. */
MUST_USE
enum err_code trace_read(struct arena *a, json_t *events, struct trace *ret, struct err *err);
MUST_USE
enum err_code trace_parse(struct arena *a, struct str text, struct trace *ret, struct err *err);
/* The log itself, or the folder of an attempt. */
MUST_USE
enum err_code trace_open(struct arena *a, const char *path, struct trace *ret, struct err *err);
void trace_fini(struct trace *t);

#define own_trace __attribute__((cleanup(trace_fini))) struct trace

/* ---- members ---- */

#define TRACE_INT_MAX ((int64_t)1 << 53) /* whole numbers beyond it count as absent */

bool trace_is(const json_t *event, const char *name);
struct str trace_text(const json_t *obj, const char *key); /* absent: "" */
int64_t trace_int(const json_t *obj, const char *key, int64_t absent);
bool trace_real(const json_t *obj, const char *key, double *ret);
/* "2026-01-31T12:00:00.123Z" of `at`; in the arena. */
const char *trace_when(struct arena *a, const json_t *event);

/* ---- the conversation ---- */

enum trace_view {
    TRACE_REAL, /* every message as it joined */
    TRACE_SEEN  /* as the model saw it last: after all rewrites of the context */
};

void trace_chat(struct arena *a, const struct trace *t, enum trace_view view, struct chat *ret);

/* The call that this result is of; NULL: none is known. */
const struct chat_part *trace_call(const struct trace *t, const json_t *tool_end);

/* ---- how it went ---- */

/* Microseconds a call of an arm ("candidate", "eager", "compile", "best"); false: not measured. */
bool trace_time(const json_t *verdict, const char *arm, double *ret);
const json_t *trace_best(const struct trace *t);   /* the best's verdict; NULL */
struct str trace_status(const struct trace *t);    /* "unfinished" without a run_end */
const json_t *trace_totals(const struct trace *t); /* the last known; NULL */

struct trace_outcome {
    bool passed;    /* a verified candidate stands */
    bool truncated; /* a budget ended it, or it is unfinished */
    bool valid;     /* false: the machine's or the endpoint's fault, or nobody let it end */
    int milestone;  /* -1: nothing passed */
    double speedup; /* against compile; 0 */
};

struct trace_outcome trace_outcome(const struct trace *t);
/* {"milestone":..,"speedup":..,"vs_eager":..,...} of the best: a new reference. */
json_t *trace_reward(const struct trace *t);
/* All that a command or a data set wants to know of an episode in one object: a new reference. */
json_t *trace_summary(const struct trace *t);

/* ---- files (trace_files.c) ---- */

/* {"files":[...]} as it was after `turn`; NULL: none is known. */
const json_t *trace_tree(const struct trace *t, int64_t turn);
/* Contents by hash. ERR_MISSING: no folder, or not in it. */
MUST_USE
enum err_code trace_object(const struct trace *t, struct arena *a, struct str hash, struct str *ret,
                           struct err *err);
/* All files of a tree into a folder that is new or empty. *ret_n: how many. */
MUST_USE
enum err_code trace_restore(const struct trace *t, const json_t *tree, const char *dir,
                            size_t *ret_n, struct err *err);
/* Unified differences of two trees (NULL: nothing), at most `max` bytes; as they are, not made
 * safe for any reader. */
void trace_diff(const struct trace *t, const json_t *before, const json_t *after, struct buf *b);

#endif
