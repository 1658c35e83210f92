/* llm/compat.h -- which fields an endpoint takes, and what to leave out when it refuses one.
 *
 * One record per (address, model): built from a table of known hosts and models, overridden by the
 * configuration, degraded one rung at a time by the endpoint's own errors, kept as JSON.
 *
 * Includes: core. Errors: ERR_CONFIG for settings that do not exist.
 */
#ifndef LLM_COMPAT_H
#define LLM_COMPAT_H

#include "core/field.h"
#include "llm/assembly.h"

enum compat_limit { LIMIT_MAX_TOKENS, LIMIT_MAX_COMPLETION_TOKENS };
enum compat_back { BACK_NEVER, BACK_TOOL_TURNS, BACK_ALWAYS };
enum compat_ids { IDS_ANY, IDS_40, IDS_ANTHROPIC, IDS_9 };
enum compat_thinking {
    THINKING_NONE,
    THINKING_BUDGET,   /* Anthropic: a number of tokens */
    THINKING_ADAPTIVE, /* Anthropic: newer models refuse numbers */
    THINKING_EFFORT,   /* reasoning_effort */
    THINKING_TEMPLATE  /* chat_template_kwargs of vLLM and SGLang */
};

/*    name, before anything is known, what it means */
#define COMPAT_FLAGS(X)                                                         \
    X(stream, true, "answers come as a stream")                                 \
    X(stream_usage, true, "takes stream_options.include_usage")                 \
    X(tool_choice, true, "takes tool_choice: auto")                             \
    X(parallel_calls, true, "takes parallel_tool_calls")                        \
    X(temperature, true, "takes temperature")                                   \
    X(top_p, true, "takes top_p")                                               \
    X(seed, true, "takes seed")                                                 \
    X(logprobs, true, "takes logprobs")                                         \
    X(token_ids, true, "takes return_token_ids (vLLM, SGLang)")                 \
    X(cache_control, true, "Anthropic: takes cache_control")                    \
    X(developer_role, false, "the system's words come from the role developer") \
    X(null_content, false, "content is null, not empty text, beside calls")     \
    X(args_object, false, "arguments in the history are objects, not text")     \
    X(result_name, false, "results carry the tool's name")                      \
    X(reasoning_empty, false, "turns with calls carry reasoning, be it empty")  \
    X(thinking_text, false, "unsigned thinking is sent back as text")           \
    X(name_fragments, false, "tool names come in pieces")                       \
    X(think_open, false, "the template opens <think>, the answer only closes it")

struct compat {
    int limit;     /* enum compat_limit */
    int back;      /* enum compat_back: whether reasoning is sent back */
    int ids;       /* enum compat_ids: what ids of calls may look like */
    int thinking;  /* enum compat_thinking: how thinking is asked for */
    int reasoning; /* the key for reasoning sent back: 0 reasoning_content, 1 reasoning */
#define X(name, start, help) bool name;
    COMPAT_FLAGS(X)
#undef X
};

#define COMPAT_FIELDS 23 /* the rows below */

/* What is known about this address and model. */
struct compat compat_for(enum dialect dialect, struct str base_url, struct str model);

/* Rows that bind every setting to `c`, for configuration and help. */
void compat_fields(struct compat *c, struct field ret[COMPAT_FIELDS]);

/* "limit=max_completion_tokens seed=false": blanks between, each a row of the above. */
MUST_USE
enum err_code compat_set(struct compat *c, struct str settings, struct err *err);

/* All settings as an object, and back; what is not named stays. */
json_t *compat_json(const struct compat *c);
MUST_USE
enum err_code compat_read(struct compat *c, const json_t *obj, struct err *err);

bool compat_equal(const struct compat *a, const struct compat *b);

/* One rung down, where the fault says or suggests that a field was not taken. *ret_what says what
 * changed, for the log (static text). False: nothing is left to try. With need_tokens, logprobs and
 * token ids are never dropped. */
bool compat_degrade(struct compat *c, const struct fault *f, const struct chat_sampling *s,
                    const char **ret_what);

#endif
