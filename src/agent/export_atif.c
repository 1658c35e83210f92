/* Agent Trajectory Interchange Format, version 1.4 (Harbor's trajectory format). */
#include <math.h>

#include "agent/export.h"
#include "llm/request.h"

struct steps {
    const struct trace *t;
    struct str tokens;
    json_t *list;
    struct arena *a;
};

static void set(json_t *obj, const char *key, json_t *v)
{
    json_object_set_new(obj, key, v);
}

static void copy(json_t *to, const char *as, const json_t *from, const char *key)
{
    json_t *j = json_object_get(from, key);
    if (j != NULL && !json_is_null(j))
        json_object_set(to, as, j);
}

static json_t *step_add(struct steps *s, const json_t *event, const char *source, struct str text)
{
    json_t *j = json_object();
    set(j, "step_id", json_integer((json_int_t)json_array_size(s->list) + 1));
    set(j, "timestamp", json_string(trace_when(s->a, event)));
    set(j, "source", json_string(source));
    set(j, "message", json_stringn(text.ptr ? text.ptr : "", text.len));
    json_array_append_new(s->list, j);
    return j;
}

static struct str joined(struct arena *a, const struct chat_message *m, enum chat_kind kind)
{
    struct buf b = { .arena = a, .max = SIZE_MAX / 4 };
    for (size_t i = 0; i < m->n_parts; i++) {
        if (m->parts[i].kind != kind)
            continue;
        buf_addz(&b, b.len > 0 ? "\n\n" : "");
        buf_add(&b, m->parts[i].text);
    }
    return (struct str){ b.ptr ? b.ptr : "", b.len };
}

static void calls_set(json_t *step, const struct chat_message *m)
{
    json_t *list = json_array();
    for (size_t i = 0; i < m->n_parts; i++) {
        const struct chat_part *p = &m->parts[i];
        if (p->kind != CHAT_CALL)
            continue;
        json_t *j = json_object();
        set(j, "tool_call_id", request_text(p->id));
        set(j, "function_name", request_text(p->name));
        set(j, "arguments", request_args(p->args));
        json_array_append_new(list, j);
    }
    if (json_array_size(list) > 0)
        json_object_set(step, "tool_calls", list);
    json_decref(list);
}

static void observation_set(json_t *step, const struct chat_message *results)
{
    json_t *list = json_array();
    for (size_t i = 0; i < results->n_parts; i++) {
        json_t *j = json_object();
        set(j, "source_call_id", request_text(results->parts[i].id));
        set(j, "content", request_text(results->parts[i].text));
        json_array_append_new(list, j);
    }
    set(step, "observation", json_pack("{s:o}", "results", list));
}

static enum err_code tokens_set(const struct steps *s, json_t *metrics, const json_t *response,
                                struct err *err)
{
    struct export_tokens k;
    if (export_tokens_at(response, s->tokens, &k, err) != OK)
        return err->code;
    if (k.n_output == 0)
        return OK;
    json_t *prompt = json_array(), *output = json_array(), *logprobs = json_array();
    for (size_t i = 0; i < k.n_prompt; i++)
        json_array_append_new(prompt, json_integer(export_id(k.prompt, i)));
    for (size_t i = 0; i < k.n_output; i++) {
        float x = export_logprob(&k, i);
        json_array_append_new(output, json_integer(export_id(k.output, i)));
        json_array_append_new(logprobs, isfinite(x) ? json_real((double)x) : json_null());
    }
    set(metrics, "prompt_token_ids", prompt);
    set(metrics, "completion_token_ids", output);
    set(metrics, "logprobs", logprobs);
    return OK;
}

static enum err_code answer_add(struct steps *s, const json_t *e, const struct trace_message *m,
                                const struct trace_message *results, struct err *err)
{
    const json_t *usage = json_object_get(e, "usage");
    struct str thinking = joined(s->a, &m->chat, CHAT_THINKING);
    json_t *step = step_add(s, e, "agent", joined(s->a, &m->chat, CHAT_TEXT));
    json_t *metrics = json_object(), *extra = json_object();
    copy(step, "model_name", e, "model");
    if (thinking.len > 0)
        set(step, "reasoning_content", json_stringn(thinking.ptr, thinking.len));
    calls_set(step, &m->chat);
    if (results != NULL)
        observation_set(step, &results->chat);
    set(step, "metrics", metrics);
    set(step, "extra", extra);
    copy(metrics, "prompt_tokens", usage, "input_total");
    copy(metrics, "completion_tokens", usage, "output_total");
    copy(metrics, "cached_tokens", usage, "input_cached");
    copy(metrics, "cost_usd", e, "cost");
    copy(extra, "turn", e, "turn");
    copy(extra, "end", e, "end");
    copy(extra, "notes", e, "notes");
    return tokens_set(s, metrics, e, err);
}

/* An answer that did not join the conversation: a step, so that its tokens and cost are there. */
static enum err_code stray_add(struct steps *s, const json_t *e, struct err *err)
{
    struct trace_message none = { 0 };
    if (answer_add(s, e, &none, NULL, err) != OK)
        return err->code;
    json_t *step = json_array_get(s->list, json_array_size(s->list) - 1);
    set(json_object_get(step, "extra"), "joined", json_false());
    return OK;
}

static enum err_code event_add(struct steps *s, size_t i, size_t *next, struct err *err)
{
    const struct trace *t = s->t;
    const json_t *e = t->event[i];
    if (trace_is(e, "response") && trace_int(e, "index", -1) < 0)
        return stray_add(s, e, err);
    if (trace_is(e, "context") || trace_is(e, "eval")) {
        json_t *step = step_add(s, e, "system", trace_is(e, "eval") ? S("eval") : S("context"));
        json_t *extra = json_deep_copy(e);
        set(step, "extra", extra);
    }
    for (; *next < t->n_messages && t->message[*next].at <= i; ++*next) {
        const struct trace_message *m = &t->message[*next], *after = m + 1;
        bool has_results = *next + 1 < t->n_messages && strcmp(after->kind, "results") == 0;
        if (strcmp(m->kind, "results") == 0)
            continue; /* with the answer that they belong to */
        if (m->role == CHAT_USER)
            step_add(s, t->event[m->at], "user", joined(s->a, &m->chat, CHAT_TEXT));
        else if (answer_add(s, t->event[m->at], m, has_results ? after : NULL, err) != OK)
            return err->code;
    }
    return OK;
}

static json_t *agent_json(const struct trace *t)
{
    json_t *j = json_pack("{s:s, s:s}", "name", "cuda-agent", "version", CA_VERSION_TEXT);
    json_t *extra = json_object();
    copy(j, "version", json_object_get(t->start, "versions"), "product");
    copy(j, "model_name", json_object_get(t->start, "endpoint"), "model");
    copy(extra, "sampling", t->start, "sampling");
    copy(extra, "budget", t->start, "budget");
    copy(extra, "tools", t->start, "tools");
    copy(extra, "skill", t->start, "skill");
    set(j, "extra", extra);
    return j;
}

static json_t *metrics_json(const struct trace *t, size_t n_steps)
{
    const json_t *totals = trace_totals(t);
    json_t *j = json_object();
    copy(j, "total_prompt_tokens", totals, "input");
    copy(j, "total_completion_tokens", totals, "output");
    copy(j, "total_cached_tokens", totals, "cached");
    copy(j, "total_cost_usd", totals, "cost");
    set(j, "total_steps", json_integer((json_int_t)n_steps));
    set(j, "extra", json_pack("{s:o}", "reward", trace_reward(t)));
    return j;
}

enum err_code export_atif(const struct trace *t, struct str tokens, FILE *out, struct err *err)
{
    own_arena a = { 0 };
    own_json list = json_array();
    own_json summary = trace_summary(t);
    struct steps s = { .t = t, .tokens = tokens, .list = list, .a = &a };
    struct str system = trace_text(t->start, "system"), id = trace_text(t->start, "episode");
    size_t next = 0;
    if (system.len > 0)
        step_add(&s, t->start, "system", system);
    for (size_t i = 0; i < t->n_events; i++)
        if (event_add(&s, i, &next, err) != OK)
            return err->code;
    own_json j =
        json_pack("{s:s, s:o, s:o, s:O, s:o, s:O}", "schema_version", "ATIF-v1.4", "session_id",
                  json_stringn(id.ptr ? id.ptr : "", id.len), "agent", agent_json(t), "steps", list,
                  "final_metrics", metrics_json(t, json_array_size(list)), "extra", summary);
    json_dumpf(j, out, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    fputc('\n', out);
    return OK;
}
