#include "llm/compat.h"

#include "core/own.h"
#include "llm/wire.h"

static const char *const limits[] = { "max_tokens", "max_completion_tokens", NULL };
static const char *const backs[] = { "never", "tool_turns", "always", NULL };
static const char *const id_forms[] = { "any", "40", "anthropic", "9", NULL };
static const char *const thinkings[] = { "none", "budget", "adaptive", "effort", "template", NULL };
static const char *const reasonings[] = { "reasoning_content", "reasoning", NULL };

void compat_fields(struct compat *c, struct field ret[COMPAT_FIELDS])
{
    const struct field rows[] = {
        FIELD_CHOICE("limit", &c->limit, limits, "the field that limits output"),
        FIELD_CHOICE("back", &c->back, backs, "when reasoning is sent back"),
        FIELD_CHOICE("ids", &c->ids, id_forms, "what ids of calls may look like"),
        FIELD_CHOICE("thinking", &c->thinking, thinkings, "how thinking is asked for"),
        FIELD_CHOICE("reasoning", &c->reasoning, reasonings, "the key of reasoning sent back"),
#define X(name, start, help) FIELD_FLAG(#name, &c->name, help),
        COMPAT_FLAGS(X)
#undef X
    };
    _Static_assert(COUNT(rows) == COMPAT_FIELDS, "a row a setting");
    memcpy(ret, rows, sizeof rows);
}

static enum err_code set_one(struct compat *c, struct str name, struct str value, struct err *err)
{
    struct field rows[COMPAT_FIELDS];
    compat_fields(c, rows);
    const struct field *f = field_find(rows, COMPAT_FIELDS, name);
    if (f == NULL)
        return err_raise(err, ERR_CONFIG, "no compat setting '%.*s'", STR_FMT(name));
    if (field_set(f, value, err) != OK) {
        err->code = ERR_CONFIG;
        return err_within(err, "compat");
    }
    return OK;
}

enum err_code compat_set(struct compat *c, struct str settings, struct err *err)
{
    struct str one, name;
    struct compat changed = *c;
    while (str_cut(&settings, ' ', &one)) {
        if (one.len == 0)
            continue;
        if (memchr(one.ptr, '=', one.len) == NULL)
            return err_raise(err, ERR_CONFIG, "compat '%.*s': wanted NAME=VALUE", STR_FMT(one));
        str_cut(&one, '=', &name);
        if (set_one(&changed, name, one, err) != OK)
            return err->code;
    }
    *c = changed;
    return OK;
}

/* ---- what is known ---- */

static const struct known {
    const char *host, *model; /* parts of the address and of the model's name; "": any */
    const char *settings;
} openai_known[] = {
    { "", "", "" },
    { "", "deepseek", "back=tool_turns reasoning_empty=true" },
    { "", "kimi", "back=tool_turns" },
    { "", "qwen", "back=tool_turns thinking=template" },
    { "api.openai.com", "",
      "limit=max_completion_tokens ids=40 null_content=true back=never "
      "thinking=effort token_ids=false" },
    { "openai.azure.com", "",
      "limit=max_completion_tokens ids=40 null_content=true back=never "
      "thinking=effort token_ids=false" },
    { "api.deepseek.com", "", "token_ids=false seed=false parallel_calls=false thinking=none" },
    { "api.moonshot", "", "token_ids=false parallel_calls=false" },
    { "dashscope", "", "token_ids=false thinking=none" },
    { "api.mistral.ai", "", "ids=9 token_ids=false stream_usage=false logprobs=false seed=false" },
    { "api.groq.com", "", "token_ids=false logprobs=false" },
    { "api.x.ai", "", "token_ids=false" },
    { "openrouter.ai", "", "token_ids=false reasoning=reasoning thinking=effort" },
    { "generativelanguage.googleapis.com", "",
      "token_ids=false logprobs=false seed=false "
      "thinking=effort parallel_calls=false" },
    { ":11434", "", "token_ids=false parallel_calls=false" }, /* Ollama's port */
};

#define ANTHROPIC_SETTINGS \
    "back=always ids=anthropic thinking=budget seed=false logprobs=false token_ids=false"

struct compat compat_for(enum dialect dialect, struct str base_url, struct str model)
{
    struct compat c = {
#define X(name, start, help) .name = start,
        COMPAT_FLAGS(X)
#undef X
    };
    struct err err = { 0 };
    bool bad = false; /* the table's own rows: a test sets each of them */
    if (dialect == DIALECT_ANTHROPIC)
        bad = compat_set(&c, S(ANTHROPIC_SETTINGS), &err) != OK;
    for (size_t i = 0; dialect == DIALECT_OPENAI && i < COUNT(openai_known); i++)
        if (wire_holds(base_url, openai_known[i].host) && wire_holds(model, openai_known[i].model))
            bad = compat_set(&c, str_from(openai_known[i].settings), &err) != OK || bad;
    if (bad)
        __builtin_trap();
    return c;
}

/* ---- JSON ---- */

json_t *compat_json(const struct compat *c)
{
    struct compat copy = *c;
    struct field rows[COMPAT_FIELDS];
    json_t *j = json_object();
    compat_fields(&copy, rows);
    for (size_t i = 0; i < COMPAT_FIELDS; i++)
        json_object_set_new(j, rows[i].name,
                            rows[i].kind == FIELD_IS_FLAG
                                ? json_boolean(*rows[i].to.flag)
                                : json_string(rows[i].choices[*rows[i].to.choice]));
    return j;
}

enum err_code compat_read(struct compat *c, const json_t *obj, struct err *err)
{
    struct compat changed = *c;
    const char *key;
    json_t *v;
    if (!json_is_object(obj))
        return err_raise(err, ERR_CONFIG, "compat is not an object");
    json_object_foreach((json_t *)obj, key, v)
    {
        struct str value = json_is_boolean(v) ? str_from(json_is_true(v) ? "true" : "false")
                                              : str_from(json_string_value(v));
        if (set_one(&changed, str_from(key), value, err) != OK)
            return err->code;
    }
    *c = changed;
    return OK;
}

bool compat_equal(const struct compat *a, const struct compat *b)
{
    own_json ja = compat_json(a);
    own_json jb = compat_json(b);
    return json_equal(ja, jb);
}

/* ---- the ladder ---- */

struct rung {
    const char *param; /* as endpoints call it */
    const char *settings, *what;
    bool of_tokens; /* never dropped where tokens are what is wanted */
};

/* A field that the endpoint names. */
static const struct rung named[] = {
    { "max_tokens", "limit=max_completion_tokens", "max_completion_tokens for max_tokens", false },
    { "max_completion_tokens", "limit=max_tokens", "max_tokens for max_completion_tokens", false },
    { "stream_options", "stream_usage=false", "without stream_options", false },
    { "parallel_tool_calls", "parallel_calls=false", "without parallel_tool_calls", false },
    { "tool_choice", "tool_choice=false", "without tool_choice", false },
    { "top_logprobs", "logprobs=false", "without logprobs", true },
    { "logprobs", "logprobs=false", "without logprobs", true },
    { "return_token_ids", "token_ids=false", "without token ids", true },
    { "chat_template_kwargs", "thinking=none", "without chat_template_kwargs", false },
    { "reasoning_effort", "thinking=none", "without reasoning_effort", false },
    { "budget_tokens", "thinking=adaptive", "adaptive thinking for a budget", false },
    { "thinking.type", "thinking=adaptive", "adaptive thinking for a budget", false },
    { "thinking", "thinking=none", "without thinking", false },
    { "temperature", "temperature=false", "without temperature", false },
    { "top_p", "top_p=false", "without top_p", false },
    { "seed", "seed=false", "without seed", false },
    { "cache_control", "cache_control=false", "without cache_control", false },
    { "developer", "developer_role=false", "system for developer", false },
};

/* What to do without, one after another, where no field is named. */
static const struct rung unnamed[] = {
    { NULL, "logprobs=false", "without logprobs", true },
    { NULL, "token_ids=false", "without token ids", true },
    { NULL, "thinking=none", "without asking for thinking", false },
    { NULL, "parallel_calls=false", "without parallel_tool_calls", false },
    { NULL, "stream_usage=false", "without stream_options", false },
    { NULL, "stream=false", "without a stream", false },
};

/* Words about the history, with the form that cures them. */
static const struct {
    const char *words, *settings, *what;
} histories[] = {
    { "get item pairs from a mapping", "args_object=true", "arguments as objects" },
    { "must be a dict", "args_object=true", "arguments as objects" },
    { "parse tool call arguments", "args_object=false", "arguments as text" },
    { "passed back", "back=tool_turns reasoning_empty=true", "reasoning sent back" },
};

/* Whether settings change anything that this request would send. */
static bool bites(const struct compat *was, const struct compat *is, const struct chat_sampling *s)
{
    if (was->logprobs != is->logprobs)
        return s->logprobs;
    if (was->token_ids != is->token_ids)
        return s->token_ids;
    if (was->thinking != is->thinking)
        return s->thinking || s->effort != CHAT_EFFORT_UNSET || was->thinking == THINKING_TEMPLATE;
    return !compat_equal(was, is);
}

static bool step(struct compat *c, const char *settings, const struct chat_sampling *s)
{
    struct compat next = *c;
    struct err err = { 0 };
    if (compat_set(&next, str_from(settings), &err) != OK)
        __builtin_trap();
    if (!bites(c, &next, s))
        return false;
    *c = next;
    return true;
}

static bool is_suspect(const struct fault *f)
{
    static const int statuses[] = { 400, 404, 422, 500, 501 };
    if (f->kind != FAULT_REQUEST && f->kind != FAULT_PARAMETER && f->kind != FAULT_SERVER)
        return false;
    for (size_t i = 0; i < COUNT(statuses); i++)
        if (f->status == statuses[i])
            return true;
    return false;
}

bool compat_degrade(struct compat *c, const struct fault *f, const struct chat_sampling *s,
                    const char **ret_what)
{
    for (size_t i = 0; f->kind == FAULT_HISTORY && i < COUNT(histories); i++)
        if (wire_holds(f->message, histories[i].words) && step(c, histories[i].settings, s)) {
            *ret_what = histories[i].what;
            return true;
        }
    for (size_t i = 0; f->kind == FAULT_PARAMETER && i < COUNT(named); i++)
        if (wire_same(f->param, named[i].param) && !(named[i].of_tokens && s->need_tokens) &&
            step(c, named[i].settings, s)) {
            *ret_what = named[i].what;
            return true;
        }
    for (size_t i = 0; is_suspect(f) && i < COUNT(unnamed); i++)
        if (!(unnamed[i].of_tokens && s->need_tokens) && step(c, unnamed[i].settings, s)) {
            *ret_what = unnamed[i].what;
            return true;
        }
    return false;
}
