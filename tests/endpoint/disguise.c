#include "endpoint/disguise.h"

#define BORN 1700000000 /* `created` of everything */
#define ANTHROPIC_OUTPUT_MAX 64000

static const struct disguise openai = {
    .name = "openai",
    .ids = { "call_", 24, false },
    .usage_null = true,
    .usage = true,
    .pairs = true,
};

static const struct disguise vllm = {
    .name = "vllm",
    .ids = { "chatcmpl-tool-", 32, true },
    .reasoning_key = "reasoning",
    .usage = true,
    .tokens = true,
};

static const struct disguise llamacpp = {
    .name = "llamacpp",
    .ids = { "", 32, false },
    .reasoning_key = "reasoning_content",
    .usage = true,
    .timings = true,
    .one_call = true,
    .comment = ":\n\n",
};

static const struct disguise ollama = {
    .name = "ollama",
    .ids = { "call_", 8, false },
    .reasoning_key = "reasoning",
    .role_each = true,
    .whole_calls = true,
    .same_index = true,
    .stop_with_calls = true,
    .cuts_prompt = true,
};

static const struct disguise anthropic = {
    .name = "anthropic",
    .anthropic = true,
    .ids = { "toolu_", 24, false },
    .pairs = true,
    .comment = "event: ping\ndata: {\"type\": \"ping\"}\n\n",
};

const struct disguise *const disguises[] = { &openai, &vllm, &llamacpp, &ollama, &anthropic, NULL };

/* ---- what is refused ---- */

static bool known(const char *key, const char *const *keys)
{
    for (; *keys != NULL; keys++)
        if (strcmp(key, *keys) == 0)
            return true;
    return false;
}

static bool refuse(struct refusal *r, const char *type, const char *message, const char *param,
                   const char *code)
{
    *r = (struct refusal){
        .status = 400, .type = type, .message = message, .param = param, .code = code
    };
    return true;
}

/* As a reasoning model of OpenAI's own. */
static bool openai_refuses(struct arena *a, const struct talk *t, struct refusal *r)
{
    static const char *const keys[] = { "model",
                                        "messages",
                                        "tools",
                                        "tool_choice",
                                        "parallel_tool_calls",
                                        "max_tokens",
                                        "max_completion_tokens",
                                        "temperature",
                                        "top_p",
                                        "seed",
                                        "stream",
                                        "stream_options",
                                        "logprobs",
                                        "top_logprobs",
                                        "reasoning_effort",
                                        "response_format",
                                        "stop",
                                        "n",
                                        "user",
                                        "store",
                                        "metadata",
                                        NULL };
    const char *type = "invalid_request_error", *key;
    json_t *v;
    json_object_foreach((json_t *)t->body, key, v) if (!known(key, keys))
    {
        return refuse(r, type, arena_fmt(a, "Unknown parameter: '%s'.", key), key,
                      "unknown_parameter");
    }
    if (json_object_get(t->body, "max_tokens"))
        return refuse(r, type,
                      "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
                      "'max_completion_tokens' instead.",
                      "max_tokens", "unsupported_parameter");
    if (t->logprobs)
        return refuse(r, type,
                      "Unsupported parameter: 'logprobs' is not supported with this model.",
                      "logprobs", "unsupported_parameter");
    const json_t *temperature = json_object_get(t->body, "temperature");
    if (temperature != NULL && json_number_value(temperature) != 1.0)
        return refuse(r, type,
                      "Unsupported value: 'temperature' does not support this value with this "
                      "model. Only the default (1) value is supported.",
                      "temperature", "unsupported_value");
    return false;
}

static bool anthropic_refuses(struct arena *a, const struct talk *t, struct refusal *r)
{
    static const char *const keys[] = { "model",       "messages",   "system",   "tools",
                                        "tool_choice", "max_tokens", "thinking", "temperature",
                                        "top_p",       "top_k",      "stream",   "stop_sequences",
                                        "metadata",    NULL };
    const char *type = "invalid_request_error", *key;
    json_t *v;
    json_object_foreach((json_t *)t->body, key, v) if (!known(key, keys))
    {
        return refuse(r, type, arena_fmt(a, "%s: Extra inputs are not permitted", key), NULL, NULL);
    }
    if (t->max_tokens <= 0)
        return refuse(r, type, "max_tokens: Field required", NULL, NULL);
    if (t->max_tokens > ANTHROPIC_OUTPUT_MAX)
        return refuse(r, type,
                      arena_fmt(a,
                                "max_tokens: %lld > %d, which is the maximum allowed number of "
                                "output tokens for %.*s",
                                (long long)t->max_tokens, ANTHROPIC_OUTPUT_MAX, STR_FMT(t->model)),
                      NULL, NULL);
    const json_t *thinking = json_object_get(json_object_get(t->body, "thinking"), "type");
    if (json_is_string(thinking) && strcmp(json_string_value(thinking), "enabled") == 0)
        return refuse(r, type,
                      "\"thinking.type.enabled\" is not supported for this model. Use "
                      "\"thinking.type.adaptive\" to control thinking behavior.",
                      NULL, NULL);
    return false;
}

static const char *context_words(struct arena *a, const struct disguise *d, const struct script *s,
                                 const struct talk *t)
{
    long long prompt = (long long)t->n_prompt, window = (long long)s->window,
              max = (long long)t->max_tokens;
    if (d == &anthropic)
        return arena_fmt(a, "prompt is too long: %lld tokens > %lld maximum", prompt, window);
    if (d == &llamacpp)
        return arena_fmt(a,
                         "request (%lld tokens) exceeds the available context size (%lld tokens), "
                         "try increasing it",
                         prompt, window);
    if (d == &vllm && prompt < window && prompt + max > window)
        return arena_fmt(a,
                         "'max_tokens' or 'max_completion_tokens' is too large: %lld. This model's "
                         "maximum context length is %lld tokens and your request has %lld input "
                         "tokens (%lld > %lld - %lld).",
                         max, window, prompt, max, window, prompt);
    return arena_fmt(a,
                     "This model's maximum context length is %lld tokens. However, your messages "
                     "resulted in %lld tokens. Please reduce the length of the messages.",
                     window, prompt);
}

static struct refusal context_refusal(struct arena *a, const struct disguise *d,
                                      const struct script *s, const struct talk *t)
{
    struct refusal r = { .status = 400,
                         .type = "invalid_request_error",
                         .message = context_words(a, d, s, t) };
    if (d == &openai) {
        r.param = "messages";
        r.code = "context_length_exceeded";
    } else if (d == &vllm) {
        r.type = "BadRequestError";
    } else if (d == &llamacpp) {
        r.type = "exceed_context_size_error";
        r.n_prompt = t->n_prompt;
        r.n_window = s->window;
    }
    return r;
}

bool disguise_refuses(struct arena *a, const struct disguise *d, const struct script *s,
                      const struct talk *t, struct refusal *ret)
{
    bool streamed_tools = t->stream && t->n_tools > 0;
    const char *unpaired = d->pairs ? talk_unpaired(a, t) : NULL;
    if (d == &openai && openai_refuses(a, t, ret))
        return true;
    if (d == &anthropic && anthropic_refuses(a, t, ret))
        return true;
    if (d == &llamacpp && t->logprobs && streamed_tools)
        return refuse(ret, "invalid_request_error", "logprobs is not supported with tools + stream",
                      NULL, NULL);
    if (unpaired != NULL)
        return refuse(ret, "invalid_request_error", unpaired, d->anthropic ? NULL : "messages",
                      NULL);
    bool room = d == &vllm && t->n_prompt + t->max_tokens > s->window;
    if (!d->cuts_prompt && (t->n_prompt >= s->window || room)) {
        *ret = context_refusal(a, d, s, t);
        return true;
    }
    return false;
}

/* ---- troubles ---- */

struct refusal disguise_trouble(struct arena *a, const struct disguise *d, const struct script *s,
                                const struct talk *t, enum trouble_kind kind)
{
    static const struct words {
        int status;
        const char *type, *code, *message, *anthropic_type;
    } rows[] = {
        [TROUBLE_RATE] = { 429, "requests", "rate_limit_exceeded", "Rate limit reached.",
                           "rate_limit_error" },
        [TROUBLE_QUOTA] = { 429, "insufficient_quota", "insufficient_quota",
                            "You exceeded your current quota, please check your plan and billing "
                            "details.",
                            "invalid_request_error" },
        [TROUBLE_SERVER] = { 500, "server_error", NULL, "The server had an error.", "api_error" },
        [TROUBLE_OVERLOADED] = { 503, "server_error", NULL, "The engine is currently overloaded.",
                                 "overloaded_error" },
        [TROUBLE_AUTH] = { 401, "invalid_request_error", "invalid_api_key",
                           "Incorrect API key provided.", "authentication_error" },
        [TROUBLE_FILTER] = { 400, "invalid_request_error", "content_filter",
                             "The response was filtered due to the content management policy.",
                             "invalid_request_error" },
        [TROUBLE_ERROR] = { 500, "server_error", NULL, "The server had an error.", "api_error" },
    };
    if (kind == TROUBLE_CONTEXT)
        return context_refusal(a, d, s, t);
    const struct words *w = &rows[kind];
    bool busy = d->anthropic && kind == TROUBLE_OVERLOADED;
    return (struct refusal){ .status = busy ? 529 : w->status,
                             .type = d->anthropic ? w->anthropic_type : w->type,
                             .message = busy ? "Overloaded" : w->message,
                             .code = w->code };
}

/* ---- bodies ---- */

json_t *disguise_error(const struct disguise *d, const struct refusal *r)
{
    if (d->anthropic)
        return json_pack("{s:s, s:{s:s, s:s}, s:s}", "type", "error", "error", "type", r->type,
                         "message", r->message, "request_id", "req_scripted");
    if (d == &llamacpp) {
        json_t *e =
            json_pack("{s:i, s:s, s:s}", "code", r->status, "message", r->message, "type", r->type);
        if (r->n_window > 0) {
            json_object_set_new(e, "n_prompt_tokens", json_integer(r->n_prompt));
            json_object_set_new(e, "n_ctx", json_integer(r->n_window));
        }
        return json_pack("{s:o}", "error", e);
    }
    if (d == &vllm)
        return json_pack("{s:{s:s, s:s, s:s?, s:i}}", "error", "message", r->message, "type",
                         r->type, "param", r->param, "code", r->status);
    return json_pack("{s:{s:s, s:s, s:s?, s:s?}}", "error", "message", r->message, "type", r->type,
                     "param", r->param, "code", r->code);
}

static json_t *model_json(const struct disguise *d, const struct script *s)
{
    if (d->anthropic)
        return json_pack("{s:s, s:s, s:s, s:s}", "type", "model", "id", s->model, "display_name",
                         s->model, "created_at", "2026-01-01T00:00:00Z");
    const char *owner = d == &openai ? "openai" : d == &ollama ? "library" : d->name;
    json_t *j = json_pack("{s:s, s:s, s:i, s:s}", "id", s->model, "object", "model", "created",
                          BORN, "owned_by", owner);
    if (d == &vllm) {
        json_object_set_new(j, "root", json_string(s->model));
        json_object_set_new(j, "parent", json_null());
        json_object_set_new(j, "max_model_len", json_integer(s->window));
        json_object_set_new(j, "permission", json_array());
    } else if (d == &llamacpp) {
        json_object_set_new(j, "meta",
                            json_pack("{s:i, s:i, s:I}", "vocab_type", 2, "n_vocab", 49152,
                                      "n_ctx_train", (json_int_t)s->window * 4));
    }
    return j;
}

json_t *disguise_models(const struct disguise *d, const struct script *all, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, model_json(d, &all[i]));
    if (d->anthropic)
        return json_pack("{s:o, s:b, s:s, s:s}", "data", list, "has_more", 0, "first_id",
                         all[0].model, "last_id", all[n - 1].model);
    if (d == &llamacpp)
        return json_pack("{s:[{s:s, s:s, s:[s]}], s:s, s:o}", "models", "name", all[0].model,
                         "type", "model", "capabilities", "completion", "object", "list", "data",
                         list);
    return json_pack("{s:s, s:o}", "object", "list", "data", list);
}

json_t *disguise_props(const struct script *first)
{
    return json_pack("{s:{s:I}, s:i, s:s}", "default_generation_settings", "n_ctx",
                     (json_int_t)first->window, "total_slots", 1, "model_alias", first->model);
}
