#include "llm/fault.h"

#include <ctype.h>
#include <curl/curl.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/own.h"
#include "llm/wire.h"

static const struct {
    const char *name;
    bool again;
} kinds[] = {
#define X(id, name, again) [id] = { name, again },
    FAULTS(X)
#undef X
};

const char *fault_name(enum fault_kind kind)
{
    return kinds[kind].name;
}

bool fault_again(enum fault_kind kind)
{
    return kinds[kind].again;
}

/* ---- words ---- */

struct words {
    const char *const *part;
    size_t n;
};
#define WORDS(...)                                         \
    ((struct words){ (const char *const[]){ __VA_ARGS__ }, \
                     sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *) })

static bool says(struct str s, struct words w)
{
    for (size_t i = 0; i < w.n; i++)
        if (wire_holds(s, w.part[i]))
            return true;
    return false;
}

/* The number right behind `phrase` (blanks and digits only between), or 0. */
static int64_t number_after(struct str s, const char *phrase)
{
    if (s.len == 0)
        return 0;
    struct str rest = str_drop(s, wire_find(s, phrase));
    rest = str_trim(str_drop(rest, strlen(phrase)));
    int64_t v = 0;
    for (size_t i = 0; i < rest.len && i < 12 && isdigit((unsigned char)rest.ptr[i]); i++)
        v = v * 10 + (rest.ptr[i] - '0');
    return v;
}

/* The number right before `phrase`, or 0. */
static int64_t number_before(struct str s, const char *phrase)
{
    size_t at = wire_find(s, phrase);
    if (at == s.len)
        return 0;
    while (at > 0 && s.ptr[at - 1] == ' ')
        at--;
    size_t from = at;
    while (from > 0 && at - from < 12 && isdigit((unsigned char)s.ptr[from - 1]))
        from--;
    return number_after((struct str){ s.ptr + from, at - from }, "");
}

static bool says_context(struct str m)
{
    if (says(m, WORDS("string too long", "string_above_max_length"))) /* one field's own limit */
        return false;
    return says(m, WORDS("context_length_exceeded", "maximum context length",
                         "exceeds the context window", "exceed_context_size",
                         "exceeds the available context size",
                         "longer than the model's context length", "requested token count exceeds",
                         "prompt is too long", "prompt too long", "exceed context limit",
                         "model_context_window_exceeded", "input token count exceeds the maximum",
                         "maximum prompt length is", "reduce the length of the messages",
                         "maximum context length", "exceeded model token limit",
                         "context window exceeds limit", "greater than the context length",
                         "input is too long", "exceeds the limit of",
                         "exceeds the maximum allowed input length",
                         "' is too large: ", "max_tokens must be at least 1, got -",
                         "max_completion_tokens' is too large"));
}

/* Sizes that the words give, and which cure they call for. */
static enum fault_kind context_kind(struct str m, struct fault *f)
{
    static const char *const window_before[] = { " maximum", "maximum context length" };
    static const char *const window_after[] = { "maximum context length is", "context length (",
                                                "> ", "maximum prompt length is", "n_ctx\":" };
    static const char *const prompt_before[] = { "in the messages", "input tokens" };
    static const char *const prompt_after[] = { "your request has", "the input (",
                                                "prompt is too long:", "exceed context limit:",
                                                "requested" };
    for (size_t i = 0; f->n_window == 0 && i < COUNT(window_after); i++)
        f->n_window = number_after(m, window_after[i]);
    for (size_t i = 0; f->n_window == 0 && i < COUNT(window_before); i++)
        f->n_window = number_before(m, window_before[i]);
    for (size_t i = 0; f->n_prompt == 0 && i < COUNT(prompt_before); i++)
        f->n_prompt = number_before(m, prompt_before[i]);
    for (size_t i = 0; f->n_prompt == 0 && i < COUNT(prompt_after); i++)
        f->n_prompt = number_after(m, prompt_after[i]);
    bool of_both = says(m, WORDS("in the completion", "is too large", "exceed context limit"));
    return of_both && f->n_prompt > 0 && f->n_prompt < f->n_window ? FAULT_ROOM : FAULT_CONTEXT;
}

/* Optional fields of requests, the longer name before one that it holds. */
static const char *const optional_fields[] = {
    "max_completion_tokens",
    "max_tokens",
    "stream_options",
    "parallel_tool_calls",
    "top_logprobs",
    "logprobs",
    "return_token_ids",
    "chat_template_kwargs",
    "reasoning_effort",
    "temperature",
    "top_p",
    "tool_choice",
    "cache_control",
    "budget_tokens",
    "thinking.type",
    "thinking",
    "developer",
    "seed",
    "strict",
};

static struct str field_named(struct arena *a, struct str m, struct str param)
{
    for (size_t i = 0; i < COUNT(optional_fields); i++)
        if (wire_same(param, optional_fields[i]))
            return str_from(optional_fields[i]);
    if (param.len > 0)
        return str_copy(a, param);
    for (size_t i = 0; i < COUNT(optional_fields); i++)
        if (wire_holds(m, optional_fields[i]))
            return str_from(optional_fields[i]);
    return (struct str){ 0 };
}

static bool says_parameter(struct str m)
{
    return says(m, WORDS("unknown parameter", "unsupported", "not supported", "unrecognized",
                         "extra inputs are not permitted", "extra_forbidden", "extra fields",
                         "unexpected keyword", "unknown field", "unknown argument",
                         "does not support", "doesn't support", "not allowed", "deprecated",
                         "no longer", "use 'max_", "not permitted", "is not a valid field"));
}

static bool says_history(struct str m)
{
    return says(m, WORDS("tool_use ids", "without `tool_result`", "without tool_result",
                         "must be followed by tool messages", "tool_call_id",
                         "unexpected `tool_use_id`", "duplicate", "passed back",
                         "cannot be modified", "roles must alternate", "parse tool call arguments",
                         "get item pairs from a mapping", "must be a dict", "must be unique"));
}

/* ---- kinds ---- */

static enum fault_kind kind_of_status(int status)
{
    switch (status) {
    case 401:
    case 403:
        return FAULT_AUTH;
    case 402:
        return FAULT_QUOTA;
    case 408:
    case 409:
    case 425:
        return FAULT_SERVER;
    case 429:
        return FAULT_RATE;
    case 503:
    case 529:
        return FAULT_OVERLOADED;
    default:
        if (status >= 300 && status < 400)
            return FAULT_REDIRECT;
        return status >= 400 && status < 500 ? FAULT_REQUEST : FAULT_SERVER;
    }
}

/* 5xx and plain "error in a stream" say less than the words beside them. */
static enum fault_kind kind_of_words(struct str m, int status, struct fault *f)
{
    if (says(m, WORDS("insufficient_quota", "insufficient balance", "insufficient_balance",
                      "exceeded your current quota", "monthly", "billing", "credit balance")))
        return FAULT_QUOTA;
    if (status != 429 && status != 401 && status != 403 && says_context(m))
        return context_kind(m, f);
    if (says(m, WORDS("content_policy", "content_filter", "content management policy",
                      "responsible_ai")))
        return FAULT_REFUSED;
    if (says(m, WORDS("overloaded")))
        return FAULT_OVERLOADED;
    if (status != 429 &&
        says(m, WORDS("rate_limit", "rate limit", "too many requests", "resource_exhausted")))
        return FAULT_RATE;
    if (status < 400 && says(m, WORDS("authentication_error", "invalid_api_key", "permission_error",
                                      "invalid api key")))
        return FAULT_AUTH;
    bool of_request = status == 400 || status == 404 || status == 422 || status == 500 ||
                      status == 501 || status < 400;
    if (of_request && says_history(m))
        return FAULT_HISTORY;
    if (of_request && says_parameter(m) && field_named(NULL, m, (struct str){ 0 }).len > 0)
        return FAULT_PARAMETER;
    if (status < 400 && says(m, WORDS("invalid_request", "bad request", "badrequest")))
        return FAULT_REQUEST;
    return kind_of_status(status);
}

static struct str cut_text(struct arena *a, struct str s)
{
    s = str_trim(s);
    bool cut = s.len > FAULT_TEXT_MAX;
    struct str kept = str_copy(a, (struct str){ s.ptr, cut ? FAULT_TEXT_MAX : s.len });
    for (char *c = (char *)kept.ptr; c < kept.ptr + kept.len; c++)
        if (*c == '\0')
            *c = ' ';
    str_plain((char *)kept.ptr);
    while (cut && kept.len > 0 && (kept.ptr[kept.len - 1] & 0xc0) == 0x80)
        kept.len--; /* the cut may stand in a character */
    if (cut && kept.len > 0 && (kept.ptr[kept.len - 1] & 0x80) != 0)
        kept.len--;
    return wire_clean(a, kept);
}

/* Whatever holds words: `message`, `msg`, FastAPI's `detail` (a text, or a list of objects). */
static struct str words_of(const json_t *e)
{
    static const char *const keys[] = { "message", "msg", "detail", "error", "title" };
    if (json_is_string(e))
        return (struct str){ json_string_value(e), json_string_length(e) };
    for (size_t i = 0; i < COUNT(keys); i++) {
        const json_t *v = json_object_get(e, keys[i]);
        if (json_is_array(v))
            v = json_array_get(v, 0);
        struct str s = json_is_string(v) ? wire_text(e, keys[i]) : (struct str){ 0 };
        if (s.len == 0 && json_is_object(v))
            s = words_of(json_object_get(v, "message") ? v : json_object_get(v, "msg"));
        if (s.len > 0)
            return s;
        if (json_is_array(json_object_get(e, keys[i])) && json_is_string(v))
            return (struct str){ json_string_value(v), json_string_length(v) };
    }
    return (struct str){ 0 };
}

/* FastAPI names the field in detail[0].loc, OpenAI in param. */
static struct str param_of(const json_t *e)
{
    struct str param = wire_text(e, "param");
    const json_t *detail = json_array_get(json_object_get(e, "detail"), 0);
    const json_t *loc = json_object_get(detail, "loc");
    const json_t *last = json_array_get(loc, json_array_size(loc) - 1);
    if (param.len == 0 && json_is_string(last))
        param = (struct str){ json_string_value(last), json_string_length(last) };
    return param;
}

struct fault fault_from_json(struct arena *a, const json_t *error, int status)
{
    struct fault f = { .status = status };
    const json_t *inner = json_object_get(error, "error");
    const json_t *e = json_is_object(inner) ? inner : error;
    int64_t code = 0;
    if (status < 400 && (wire_int(e, "code", &code) || wire_int(e, "status", &code)) &&
        code >= 400 && code < 600)
        f.status = (int)code;
    wire_count(e, "n_prompt_tokens", &f.n_prompt);
    wire_count(e, "n_ctx", &f.n_window);
    f.message = cut_text(a, words_of(e));
    /* Codes and types take part: they are what the words are about. */
    const char *all = arena_fmt(a, "%.*s %.*s %.*s %.*s", STR_FMT(wire_text(e, "type")),
                                STR_FMT(wire_text(e, "code")), STR_FMT(wire_text(e, "status")),
                                STR_FMT(f.message));
    f.kind = kind_of_words(str_from(all), f.status, &f);
    struct str param = param_of(e);
    if (f.kind == FAULT_PARAMETER || (f.kind == FAULT_REQUEST && param.len > 0)) {
        f.param = field_named(a, str_from(all), cut_text(a, param));
        for (size_t i = 0; f.kind == FAULT_REQUEST && i < COUNT(optional_fields); i++)
            if (wire_same(f.param, optional_fields[i]))
                f.kind = FAULT_PARAMETER;
    }
    if (f.message.len == 0)
        f.message = cut_text(a, str_from(all));
    return f;
}

/* ---- how long to wait ---- */

/* "6m0s", "1h2m", "250ms", "20s"; false for anything else. */
static bool duration_ms(const char *z, int64_t *ret)
{
    static const struct {
        const char *unit;
        double ms;
    } units[] = { { "ms", 1 }, { "h", 3600e3 }, { "m", 60e3 }, { "s", 1e3 } };
    double total = 0;
    if (*z == '\0')
        return false;
    while (*z != '\0') {
        char *end = NULL;
        double v = strtod(z, &end);
        size_t i = 0;
        if (end == z || !(v >= 0 && v < 1e9))
            return false;
        while (i < COUNT(units) && strncmp(end, units[i].unit, strlen(units[i].unit)) != 0)
            i++;
        if (i == COUNT(units))
            return false;
        total += v * units[i].ms;
        z = end + strlen(units[i].unit);
    }
    *ret = (int64_t)total;
    return true;
}

/* Seconds, a duration, seconds since 1970, or an HTTP date. */
static bool wait_from(struct arena *a, struct str s, int64_t now_s, int64_t *ret_ms)
{
    const char *z = str_z(a, str_trim(s));
    struct err err;
    double v;
    if (*z == '\0')
        return false;
    if (str_real(str_from(z), 0, 1e12, &v, &err) == OK) {
        bool is_date = v > 1e9;
        v = is_date ? v - (double)now_s : v;
        *ret_ms = v > 0 ? (int64_t)(v * 1e3) : 0;
        return true;
    }
    if (duration_ms(z, ret_ms))
        return true;
    time_t at = curl_getdate(z, NULL);
    if (at < 0)
        return false;
    *ret_ms = at > now_s ? ((int64_t)at - now_s) * 1000 : 0;
    return true;
}

static void wait_read(struct arena *a, const struct fault_http *h, struct fault *f)
{
    struct err err;
    double ms;
    if (str_real(str_trim(h->retry_after_ms), 0, 1e12, &ms, &err) == OK) {
        f->has_wait = true;
        f->wait_ms = (int64_t)ms;
    } else {
        f->has_wait = wait_from(a, h->retry_after, h->now_s, &f->wait_ms) ||
                      wait_from(a, h->reset, h->now_s, &f->wait_ms);
    }
}

struct fault fault_from_http(struct arena *a, const struct fault_http *h)
{
    struct fault f = { .status = h->status };
    bool mended = false;
    own_json whole = wire_json(str_trim(h->body), &mended);
    const json_t *e = json_is_array(whole) ? json_array_get(whole, 0) : whole;
    if (json_is_object(e) || json_is_string(e)) {
        f = fault_from_json(a, e, h->status);
    } else {
        f.message = cut_text(a, h->body);
        f.kind = kind_of_words(f.message, h->status, &f);
        if (f.kind == FAULT_PARAMETER)
            f.param = field_named(a, f.message, f.param);
        /* Some gateways say "too long" with a bare status (seen at Cerebras). */
        if (f.message.len == 0 && (h->status == 400 || h->status == 413))
            f.kind = FAULT_CONTEXT;
    }
    if (f.message.len == 0)
        f.message = str_from(arena_fmt(a, "HTTP status %d without a body", h->status));
    wait_read(a, h, &f);
    return f;
}

struct fault fault_ours(struct arena *a, enum fault_kind kind, const char *fmt, ...)
{
    char text[FAULT_TEXT_MAX];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return (struct fault){ .kind = kind, .message = cut_text(a, str_from(text)) };
}
