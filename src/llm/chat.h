/* llm/chat.h -- a conversation as plain data, of no dialect.
 *
 * The one structure that request writers read and assembled replies are put back into. Text is
 * borrowed (struct str): the caller's arena holds it for as long as the conversation lives.
 *
 * Includes: core. Errors: none; nothing here can fail.
 */
#ifndef LLM_CHAT_H
#define LLM_CHAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/str.h"

enum chat_kind {
    CHAT_TEXT,
    CHAT_THINKING, /* what the model thought aloud; `seal` is the server's signature, if any */
    CHAT_SEALED,   /* thinking that only the server can read, in `text` */
    CHAT_CALL,  /* assistant: call tool `name` with `args`; `seal`: JSON that must be sent back */
    CHAT_RESULT /* user: what call `id` gave, in `text` */
};

struct chat_part {
    enum chat_kind kind;
    bool is_error; /* CHAT_RESULT */
    struct str text;
    struct str id, name; /* of the call; a result repeats both */
    struct str args;     /* JSON text of an object */
    struct str seal;     /* opaque to us */
};

enum chat_role { CHAT_USER, CHAT_ASSISTANT };

struct chat_message {
    enum chat_role role;
    bool aborted; /* an assistant's turn that was cut or failed: never sent */
    const struct chat_part *parts;
    size_t n_parts;
    struct str extra; /* JSON text of an object: unknown keys to be sent back as they came; or "" */
};

struct chat_tool {
    struct str name, description;
    struct str schema; /* JSON text of a JSON schema for the arguments */
};

struct chat {
    struct str system; /* "": none */
    const struct chat_message *messages;
    size_t n_messages;
    const struct chat_tool *tools;
    size_t n_tools;
};

enum chat_effort { CHAT_EFFORT_UNSET, CHAT_EFFORT_LOW, CHAT_EFFORT_MEDIUM, CHAT_EFFORT_HIGH };

/* How to sample. A field that an endpoint does not take is left out (llm/compat.h says which). */
struct chat_sampling {
    int64_t max_tokens; /* > 0 */
    bool has_temperature, has_top_p, has_seed;
    double temperature, top_p;
    int64_t seed;
    bool thinking;           /* ask for thinking where it can be asked for */
    int64_t thinking_tokens; /* a budget, for endpoints that take one; 0: no word about it */
    enum chat_effort effort;
    bool logprobs;    /* log-probabilities of what was sampled */
    bool token_ids;   /* token ids of prompt and answer */
    bool need_tokens; /* both are what the request is for: never done without */
};

/* The tool that a model means: by name, else without regard to case, else by a name that models
 * are known to use for it ("bash", "execute_bash", "shell" for Bash). NULL is normal. */
const struct chat_tool *chat_tool_find(const struct chat_tool *tools, size_t n, struct str name);

/* The conversation as every server takes it: each call has exactly one result, in the message
 * right after it and before anything else of the user; results without a call, aborted turns and
 * empty messages are gone; neighbours of one role are one message. The parts are new, the text is
 * borrowed from `in`. */
void chat_normalise(struct arena *a, const struct chat *in, struct chat *ret);

#endif
