/* agent/transcript.h -- an episode's state: a fold over its events and nothing else.
 *
 * The running episode and one that is taken up again use the same fold: an event is written, then
 * applied. Nobody else changes what is here.
 *
 * Includes: core, llm. Memory: heap, and an arena of its own for texts that transcript_compact()
 * makes anew. Errors: ERR_FORMAT for an event that cannot be, ERR_SYSTEM.
 */
#ifndef AGENT_TRANSCRIPT_H
#define AGENT_TRANSCRIPT_H

#include "agent/budget.h"
#include "agent/guard.h"
#include "core/sha256.h"

enum said_by { SAID_TASK, SAID_NUDGE, SAID_STEER, SAID_REMINDER, SAID_ANSWER, SAID_RESULTS };

/* A message; its index is its place. */
struct said {
    struct chat_message m;
    struct chat_part *parts; /* m's */
    enum said_by by;
    int64_t turn; /* of an answer and its results; else of the next turn */
    size_t bytes; /* as far as a request would hold them */
    bool gone;    /* the model does not see it any more */
};

/* One answer of the examiner. */
struct graded {
    int64_t turn;
    const char *step, *status, *candidate, *idea; /* owned; idea: "" for none */
    double us;                                    /* a call; 0: not timed */
    double vs_eager, vs_compile, vs_best;         /* 0: not measured */
    int64_t milestone;
    bool best; /* the best so far when it came */
};

/* The turn that is going on. */
struct flight {
    bool open;                /* a request went out and its turn has not ended */
    bool answered;            /* its answer is here */
    bool summary;             /* what is asked for is a summary, not a turn of the model's */
    int64_t turn, seq;        /* seq of the request's event */
    int64_t index;            /* of the answer; -1: it does not join */
    struct chat_part *result; /* in the order of the calls; owned */
    size_t n_results, cap_results;
    json_t *touched;    /* paths of files that the model has seen or written in it; owned */
    struct totals used; /* by its answer; seconds: none */
};

struct transcript {
    struct arena arena; /* texts */
    struct said *said;  /* owned */
    size_t n, cap;
    struct chat_message *view; /* owned: what the model sees, in order */
    size_t n_view, cap_view;
    struct str system, summary;    /* "": none */
    size_t summary_at;             /* the message that it stands before */
    struct chat_part summary_part; /* the same as a message's */
    size_t base_bytes, bytes;      /* of system and tools; of all that the model sees */
    size_t waste;                  /* bytes of the arena that nothing points to any more */
    int64_t anchor_tokens;         /* what the server counted last ... */
    size_t anchor_bytes;           /* ... for so many bytes */
    size_t asked_bytes;            /* of the last request */
    double bytes_per_token;
    struct sha256 prefix_base, prefix; /* of system and tools; and of the view's first messages */
    size_t n_prefix;

    struct totals totals;
    int64_t next_turn;
    struct flight flight;
    enum answer last;                            /* of the last turn */
    int unusable, refusals, overflows, contents; /* in a row */
    bool refused_reset;                          /* a fresh context was tried after a refusal */
    bool nudged;                                 /* since the last turn ended */
    int loop_nudges;                             /* since the model last went no circles */
    struct action action[ACTIONS_MAX];
    size_t n_actions;
    bool warned[BUDGET_KINDS], ended[BUDGET_KINDS], window_ended;
    bool reminder_due; /* what the model sees was shortened */
    bool submitted;
    char *fault; /* owned: the endpoint's words, when it failed; NULL: none */

    struct graded *graded; /* owned */
    size_t n_graded, cap_graded;
    json_t *best;  /* the `eval` event; owned; NULL: none */
    json_t *files; /* of the last `fs`; owned; NULL: none */
    char tree[SHA256_HEX];

    /* What a tools session knows and its log does not: to be given back to a new one. */
    json_t *seen;     /* path -> hash of the file at the end of the turn that touched it; owned */
    char *todos;      /* arguments of the last TodoWrite; owned; NULL: none */
    char *cwd;        /* of the shell; owned; NULL: the workspace */
    int64_t behind;   /* commands that were started in the background */
    bool behind_lost; /* they have ended with the process before, and the model does not know */
    int64_t todo_turn;

    struct {
        int64_t turn, before, after;
        bool reset;
    } cleanup[2]; /* the last ones, the newest first; turn -1: none */
    char *status; /* owned: of `run_end`; NULL: it goes on */
    char *reason; /* owned */
    bool started;
};

void transcript_init(struct transcript *t);
void transcript_fini(struct transcript *t);

MUST_USE
enum err_code transcript_apply(struct transcript *t, const json_t *event, struct err *err);

/* What the next request would have, in tokens; and what `bytes` of text are. */
int64_t transcript_tokens(const struct transcript *t);
int64_t transcript_tokens_of(const struct transcript *t, size_t bytes);

/* SHA-256 chain over what the model sees now; costs only what is new. */
void transcript_prefix(struct transcript *t, char ret[SHA256_HEX]);

/* Texts that nothing points to any more are given back. No request may be under way. */
void transcript_compact(struct transcript *t);

/* The k-th call of an answer; NULL is normal. */
const struct chat_part *transcript_call(const struct transcript *t, int64_t index, size_t k);
size_t transcript_calls(const struct transcript *t, int64_t index);

/* A file's path as a model writes it, as trees have it: from the workspace's root. */
struct str transcript_path(struct str path);

#endif
