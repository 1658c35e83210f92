/* /v1/chat/completions, whole and streamed; /v1/completions in tokens. */
#include "endpoint/answer.h"

#define BORN 1700000000

static json_t *text(struct str s)
{
    return json_stringn(s.ptr ? s.ptr : "", s.len);
}

static const char *finish_reason(const struct telling *t)
{
    static const char *const words[] = {
        [END_STOP] = "stop",
        [END_LENGTH] = "length",
        [END_CONTEXT] = "length",
        [END_PAUSE] = "stop",
        [END_NONE] = NULL,
        [END_REFUSED] = "refusal",
        [END_REFUSED_FIELD] = "stop",
        [END_REFUSED_FILTER] = "content_filter",
        [END_ABORT] = "abort",
    };
    bool calls = t->n_calls > 0 && !t->turn->markup && !t->disguise->stop_with_calls;
    return t->end == END_STOP && calls ? "tool_calls" : words[t->end];
}

static json_t *usage(const struct telling *t)
{
    json_t *j =
        json_pack("{s:I, s:I, s:I}", "prompt_tokens", (json_int_t)t->input, "completion_tokens",
                  (json_int_t)t->output, "total_tokens", (json_int_t)(t->input + t->output));
    if (t->cached >= 0)
        json_object_set_new(j, "prompt_tokens_details",
                            json_pack("{s:I}", "cached_tokens", (json_int_t)t->cached));
    if (t->disguise->usage_null)
        json_object_set_new(j, "completion_tokens_details",
                            json_pack("{s:I}", "reasoning_tokens", (json_int_t)t->reasoning));
    return j;
}

static json_t *timings(const struct telling *t)
{
    int64_t cached = t->cached > 0 ? t->cached : 0;
    return json_pack("{s:I, s:I, s:I}", "cache_n", (json_int_t)cached, "prompt_n",
                     (json_int_t)(t->input - cached), "predicted_n", (json_int_t)t->output);
}

static double logprob(int32_t id)
{
    return -0.001 * (double)(id % 997);
}

static json_t *logprobs(struct arena *a, const int32_t *ids, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        struct str s = token_text(a, ids[i]);
        json_t *bytes = json_array(), *token = text(s);
        for (size_t k = 0; k < s.len; k++)
            json_array_append_new(bytes, json_integer((unsigned char)s.ptr[k]));
        json_array_append_new(list, json_pack("{s:o, s:f, s:o, s:[]}", "token",
                                              token ? token : json_string(""), "logprob",
                                              logprob(ids[i]), "bytes", bytes, "top_logprobs"));
    }
    return json_pack("{s:o}", "content", list);
}

static json_t *id_list(const int32_t *ids, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_integer(ids[i]));
    return list;
}

static json_t *call_json(struct arena *a, const struct telling *t, size_t n, struct str args)
{
    return json_pack("{s:s, s:s, s:{s:s, s:o}}", "id", tell_call_id(a, t, n), "type", "function",
                     "function", "name", t->turn->calls[n].name, "arguments", text(args));
}

/* ---- streamed ---- */

static void delta_add(const struct telling *t, json_t *list, json_t *delta)
{
    if (t->disguise->role_each) {
        json_object_set_new(delta, "role", json_string("assistant"));
        if (json_object_get(delta, "content") == NULL)
            json_object_set_new(delta, "content", json_string(""));
    }
    json_array_append_new(list, delta);
}

static void text_deltas(const struct telling *t, json_t *list, const char *key, struct str s)
{
    struct str piece;
    while (piece_take(t->turn->pieces, &s, &piece))
        delta_add(t, list, json_pack("{s:o}", key, text(piece)));
}

static void call_deltas(struct arena *a, const struct telling *t, json_t *list, size_t n)
{
    struct str args = tell_args(t, n), piece;
    int index = t->disguise->same_index ? 0 : (int)n;
    json_t *call = call_json(a, t, n, t->disguise->whole_calls ? args : S(""));
    json_object_set_new(call, "index", json_integer(index));
    delta_add(t, list, json_pack("{s:[o]}", "tool_calls", call));
    while (!t->disguise->whole_calls && piece_take(t->turn->pieces, &args, &piece))
        delta_add(t, list,
                  json_pack("{s:[{s:i, s:{s:o}}]}", "tool_calls", "index", index, "function",
                            "arguments", text(piece)));
}

static json_t *deltas(struct arena *a, const struct telling *t)
{
    json_t *list = json_array(),
           *first = json_pack("{s:s, s:s}", "role", "assistant", "content", "");
    if (t->disguise->usage_null)
        json_object_set_new(first, "refusal", json_null());
    json_array_append_new(list, first);
    if (t->disguise->reasoning_key != NULL)
        text_deltas(t, list, t->disguise->reasoning_key, t->thinking);
    text_deltas(t, list, t->end == END_REFUSED_FIELD ? "refusal" : "content", t->text);
    for (size_t i = 0; i < t->n_calls && !t->turn->markup; i++)
        call_deltas(a, t, list, i);
    return list;
}

static json_t *chunk(const struct telling *t, json_t *choices)
{
    json_t *j = json_pack("{s:s, s:s, s:i, s:s, s:o}", "id", "chatcmpl-scripted", "object",
                          "chat.completion.chunk", "created", BORN, "model", t->script->model,
                          "choices", choices);
    if (t->disguise->usage_null && t->talk->want_usage)
        json_object_set_new(j, "usage", json_null());
    return j;
}

/* A share of the tokens stands beside each delta. */
static json_t *choice(struct arena *a, const struct telling *t, json_t *delta, size_t i, size_t n)
{
    size_t from = t->n_ids * i / n, to = t->n_ids * (i + 1) / n;
    json_t *j =
        json_pack("{s:i, s:O, s:n, s:n}", "index", 0, "delta", delta, "logprobs", "finish_reason");
    if (t->disguise->tokens && t->talk->token_ids)
        json_object_set_new(j, "token_ids", id_list(t->ids + from, to - from));
    if (t->disguise->tokens && t->talk->logprobs)
        json_object_set_new(j, "logprobs", logprobs(a, t->ids + from, to - from));
    return j;
}

static void last_chunks(struct answer *ans, const struct telling *t)
{
    const char *reason = finish_reason(t);
    json_t *end = chunk(t, json_pack("[{s:i, s:{}, s:s}]", "index", 0, "delta", "finish_reason",
                                     reason ? reason : ""));
    bool more = t->disguise->usage && t->talk->want_usage;
    if (t->disguise->timings && !more)
        json_object_set_new(end, "timings", timings(t));
    if (reason != NULL)
        answer_event(ans, NULL, end);
    else
        json_decref(end);
    if (more) {
        json_t *last = chunk(t, json_array());
        json_object_set_new(last, "usage", usage(t));
        if (t->disguise->timings)
            json_object_set_new(last, "timings", timings(t));
        answer_event(ans, NULL, last);
    }
    answer_raw(ans, S("data: [DONE]\n\n"));
}

void openai_tell(struct answer *ans, const struct telling *t)
{
    own_json list = deltas(ans->arena, t);
    size_t n = json_array_size(list), i;
    json_t *delta;
    json_array_foreach(list, i, delta)
    {
        json_t *j = chunk(t, json_pack("[o]", choice(ans->arena, t, delta, i, n)));
        if (i == 0 && t->disguise->tokens && t->talk->token_ids)
            json_object_set_new(j, "prompt_token_ids", id_list(t->talk->ids, t->talk->n_ids));
        answer_event(ans, NULL, j);
    }
    last_chunks(ans, t);
}

/* ---- whole ---- */

json_t *openai_whole(struct arena *a, const struct telling *t)
{
    bool calls = t->n_calls > 0 && !t->turn->markup;
    const char *reason = finish_reason(t);
    json_t *m = json_pack("{s:s, s:o}", "role", "assistant", "content",
                          calls && t->text.len == 0 ? json_null() : text(t->text));
    if (t->end == END_REFUSED_FIELD) {
        json_object_set_new(m, "content", json_null());
        json_object_set_new(m, "refusal", text(t->text));
    }
    if (t->disguise->reasoning_key != NULL && t->thinking.len > 0)
        json_object_set_new(m, t->disguise->reasoning_key, text(t->thinking));
    json_t *list = json_array();
    for (size_t i = 0; calls && i < t->n_calls; i++)
        json_array_append_new(list, call_json(a, t, i, tell_args(t, i)));
    if (calls)
        json_object_set(m, "tool_calls", list);
    json_decref(list);
    json_t *c = json_pack("{s:i, s:o, s:s?}", "index", 0, "message", m, "finish_reason", reason);
    if (t->disguise->tokens && t->talk->token_ids)
        json_object_set_new(c, "token_ids", id_list(t->ids, t->n_ids));
    if (t->disguise->tokens && t->talk->logprobs)
        json_object_set_new(c, "logprobs", logprobs(a, t->ids, t->n_ids));
    json_t *j = json_pack("{s:s, s:s, s:i, s:s, s:[o], s:o}", "id", "chatcmpl-scripted", "object",
                          "chat.completion", "created", BORN, "model", t->script->model, "choices",
                          c, "usage", usage(t));
    if (t->disguise->tokens && t->talk->token_ids)
        json_object_set_new(j, "prompt_token_ids", id_list(t->talk->ids, t->talk->n_ids));
    if (t->disguise->timings)
        json_object_set_new(j, "timings", timings(t));
    return j;
}

/* vLLM's completions of a prompt of ids. */
json_t *tokens_whole(struct arena *a, const struct telling *t)
{
    json_t *values = json_array(), *words = json_array();
    struct buf b = { .arena = a, .max = (size_t)64 << 20 };
    for (size_t i = 0; i < t->n_ids; i++) {
        struct str s = token_text(a, t->ids[i]);
        json_t *word = text(s);
        json_array_append_new(values, json_real(logprob(t->ids[i])));
        json_array_append_new(words, word ? word : json_string(""));
        if (t->ids[i] != ID_END)
            buf_add(&b, s);
    }
    json_t *all = text((struct str){ b.ptr, b.len });
    json_t *c = json_pack("{s:i, s:o, s:s, s:{s:o, s:o}, s:o, s:o}", "index", 0, "text",
                          all ? all : json_string(""), "finish_reason",
                          t->end == END_LENGTH ? "length" : "stop", "logprobs", "tokens", words,
                          "token_logprobs", values, "token_ids", id_list(t->ids, t->n_ids),
                          "prompt_token_ids", id_list(t->talk->ids, t->talk->n_ids));
    return json_pack("{s:s, s:s, s:i, s:s, s:[o], s:o}", "id", "cmpl-scripted", "object",
                     "text_completion", "created", BORN, "model", t->script->model, "choices", c,
                     "usage", usage(t));
}
