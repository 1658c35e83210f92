/* llm/assembly_int.h -- what the files of the assembly share. Not for other parts. */
#ifndef LLM_ASSEMBLY_INT_H
#define LLM_ASSEMBLY_INT_H

#include "llm/assembly.h"
#include "llm/sse.h"

/* Where a JSON text stands: whether its first value is whole, without reading it twice. */
struct scan {
    size_t depth;
    bool in_string, escaped, whole;
};

struct slot {
    enum chat_kind kind;
    bool keyed;
    int64_t key;
    struct str id;
    struct buf name, text, seal; /* text: of the block, or a call's arguments */
    struct scan scan;
    bool from_start; /* Anthropic: arguments came whole in content_block_start */
};

enum assembly_mode { MODE_UNKNOWN, MODE_EVENTS, MODE_BODY };

struct assembly {
    struct arena *arena;
    struct assembly_spec spec;
    enum assembly_mode mode;
    struct sse sse;
    struct buf head; /* the first bytes, to quote when they are no answer */
    struct buf body;
    size_t n_bytes, n_events;
    bool done;     /* the server said so */
    bool finished; /* a finish or stop reason came */
    bool has_usage, has_choice;
    int64_t choice; /* the index of the choice that is ours */
    struct str stop_text, model;
    const char *reasoning_key; /* static */
    size_t n_pings;
    struct buf text, reasoning, refusal; /* OpenAI; a refusal of either */
    struct buf details;                  /* OpenAI: elements of reasoning_details, with commas */
    struct slot *slots;                  /* calls (OpenAI), blocks (Anthropic) */
    size_t n_slots, cap_slots;
    struct reply_usage usage;
    struct reply_tokens tokens;
    size_t cap_prompt, cap_output, cap_logprob;
    unsigned notes;
    struct fault fault;
};

void openai_object(struct assembly *as, const json_t *chunk);
void anthropic_object(struct assembly *as, struct str event, const json_t *o);
void assembly_finish(struct assembly *as, struct reply *ret);

void assembly_fail(struct assembly *as, struct fault fault); /* the first one stays */
void assembly_error(struct assembly *as, const json_t *error);
void assembly_stop(struct assembly *as, struct str reason);

struct buf assembly_buf(struct assembly *as);
void assembly_add(struct assembly *as, struct buf *b, struct str s);
/* A new slot at the end; NULL (and a fault) past ASSEMBLY_CALLS_MAX. */
struct slot *slot_open(struct assembly *as, enum chat_kind kind);
void slot_args(struct assembly *as, struct slot *s, const json_t *args);
void scan_take(struct scan *s, struct str bytes);
struct str json_text(struct arena *a, const json_t *j); /* compact, keys sorted */

void tokens_take(struct assembly *as, int32_t **list, size_t *n, size_t *cap, const json_t *ids);
void logprobs_take(struct assembly *as, const json_t *logprobs);

#endif
