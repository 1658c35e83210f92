/* llm/reply.h -- what a model answered: one message, why it ended, what had to be tolerated.
 *
 * Streams and whole bodies of both dialects end in this one structure. Nothing is passed over in
 * silence: each thing that was read otherwise than the servers' documents say is a note.
 *
 * Includes: core. Memory: in the arena of the assembly; `message` can stand in a struct chat.
 */
#ifndef LLM_REPLY_H
#define LLM_REPLY_H

#include <jansson.h>

#include "llm/chat.h"
#include "llm/fault.h"

#define REPLY_ENDS(X)                                                                        \
    X(REPLY_CUT, "cut")         /* bytes ended before the answer: never a final answer */    \
    X(REPLY_STOP, "stop")       /* the model had said what it had to say; calls may stand */ \
    X(REPLY_LENGTH, "length")   /* the limit of output: its calls are dropped */             \
    X(REPLY_CONTEXT, "context") /* the window is full: the same */                           \
    X(REPLY_REFUSED, "refused") /* `refused_by` says how it is known */                      \
    X(REPLY_PAUSED, "paused")   /* the server wants the turn sent back to go on */           \
    X(REPLY_FAILED, "failed")   /* `fault` says why */

enum reply_end {
#define X(id, name) id,
    REPLY_ENDS(X)
#undef X
};

#define REFUSALS(X)                   \
    X(REFUSED_NOT, "no")              \
    X(REFUSED_BY_STOP, "stop_reason") \
    X(REFUSED_BY_FIELD, "refusal")    \
    X(REFUSED_BY_FILTER, "filter")    \
    X(REFUSED_IN_WORDS, "words") /* a short text without calls that begins as refusals do */

enum refused_by {
#define X(id, name) id,
    REFUSALS(X)
#undef X
};

#define REPLY_NOTES(X)                                                                          \
    X(NOTE_BODY, "body", 0)                    /* one JSON body where a stream was awaited */   \
    X(NOTE_MENDED, "mended", 1)                /* JSON of the wire had to be mended */          \
    X(NOTE_JOINED_EVENTS, "joined_events", 2)  /* several objects in one event */               \
    X(NOTE_NO_DONE, "no_done", 3)              /* ended without [DONE] or message_stop */       \
    X(NOTE_NO_FINISH, "no_finish", 4)          /* [DONE] without a reason */                    \
    X(NOTE_UNKNOWN_STOP, "unknown_stop", 5)    /* `stop_text` has it; read as stop */           \
    X(NOTE_NO_INDEX, "no_index", 6)            /* call fragments without an index */            \
    X(NOTE_SAME_INDEX, "same_index", 7)        /* two calls under one index */                  \
    X(NOTE_MINTED_ID, "minted_id", 8)          /* a call without an id got one */               \
    X(NOTE_NAME_CUT, "name_cut", 9)            /* markup behind a tool's name */                \
    X(NOTE_ARGS_OBJECT, "args_object", 10)     /* arguments as an object, not text */           \
    X(NOTE_ARGS_REPAIRED, "args_repaired", 11) /* `repairs` of the call says how */             \
    X(NOTE_ARGS_BROKEN, "args_broken", 12)     /* not JSON: ask again once, without a stream */ \
    X(NOTE_DOUBLED, "doubled", 13)             /* all arguments of a call came twice */         \
    X(NOTE_LEGACY_CALL, "legacy_call", 14)     /* function_call */                              \
    X(NOTE_STOP_WITH_CALLS, "stop_with_calls", 15)                                              \
    X(NOTE_CALLS_LOST, "calls_lost", 16)       /* the reason speaks of calls, none came */      \
    X(NOTE_CALLS_DROPPED, "calls_dropped", 17) /* cut by a limit, or refused */                 \
    X(NOTE_MARKUP, "markup", 18)               /* a call as text: a wrong parser there */       \
    X(NOTE_EMPTY, "empty", 19)                 /* neither text nor calls */                     \
    X(NOTE_TWIN_REASONING, "twin_reasoning", 20)                                                \
    X(NOTE_THINK_TAGS, "think_tags", 21) /* <think> in the text */                              \
    X(NOTE_NO_USAGE, "no_usage", 22)     /* usage is our estimate */                            \
    X(NOTE_PROMPT_CUT, "prompt_cut", 23) /* the server counted far less than was sent */        \
    X(NOTE_CUT_EVENT, "cut_event", 24)   /* half an event at the end */                         \
    X(NOTE_UNKNOWN_BLOCK, "unknown_block", 25)

enum reply_note {
#define X(id, name, bit) id = 1 << (bit),
    REPLY_NOTES(X)
#undef X
};

/* Tokens, normalised: input_total holds cached ones, output_total holds reasoning. */
struct reply_usage {
    bool estimated;
    int64_t input_total, input_cached, input_cache_write, output_total, reasoning;
};

struct reply_call {
    struct str id, name;
    struct str args;  /* JSON text of an object, unless broken: then as it came */
    unsigned repairs; /* of llm/repair.h */
    bool broken;
    struct str why;  /* broken: where the text cannot be read */
    struct str seal; /* JSON text to be sent back with the call, or "" */
};

/* Tokens of a chat answer, for servers that give them; both lists belong to the answer. */
struct reply_tokens {
    int32_t *prompt, *output;
    size_t n_prompt, n_output;
    double *logprob; /* of what was sampled */
    size_t n_logprob;
};

struct reply {
    enum reply_end end;
    enum refused_by refused_by;
    unsigned notes;
    struct str text, reasoning, refusal; /* all pieces of each, joined */
    struct reply_call *calls;
    size_t n_calls;
    struct chat_message message; /* the same as parts, in the order in which they came */
    struct reply_usage usage;
    struct reply_tokens tokens;
    struct str model, stop_text; /* as the server says */
    const char *reasoning_key;   /* where reasoning stood: "reasoning", "<think>" ...; NULL */
    size_t n_keep_alive;         /* comments and pings that came */
    struct fault fault;          /* REPLY_FAILED and REPLY_CUT */
};

const char *reply_end_name(enum reply_end end);
const char *refused_name(enum refused_by by);

/* The whole reply as JSON, for logs and tests: a new reference. */
json_t *reply_json(const struct reply *r);

/* Whether a short answer without calls is a refusal by the way it begins. */
bool reply_refuses(struct str text);

#endif
