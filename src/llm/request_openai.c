/* The body of a request to /v1/chat/completions. */
#include "core/own.h"
#include "llm/request.h"

static void set(json_t *obj, const char *key, json_t *v)
{
    json_object_set_new(obj, key, v);
}

/* All parts of one kind as one text. */
static struct str joined(struct arena *a, const struct chat_message *m, enum chat_kind kind)
{
    struct buf b = { .arena = a, .max = SIZE_MAX / 4 };
    for (size_t i = 0; i < m->n_parts; i++) {
        if (m->parts[i].kind != kind)
            continue;
        if (b.len > 0)
            buf_addz(&b, "\n\n");
        buf_add(&b, m->parts[i].text);
    }
    return (struct str){ b.ptr ? b.ptr : "", b.len };
}

static json_t *call_json(const struct request *r, const struct chat_part *p, struct str id)
{
    json_t *args = request_args(p->args), *j = json_object(), *function = json_object();
    set(function, "name", request_text(p->name));
    if (r->compat->args_object) {
        set(function, "arguments", args);
    } else {
        /* The text as it came is kept where it is JSON: a model's own tokens. */
        json_error_t at;
        own_json as_it_came = json_loadb(p->args.ptr ? p->args.ptr : "", p->args.len, 0, &at);
        own_mem char *z = json_dumps(args, JSON_COMPACT);
        set(function, "arguments",
            json_is_object(as_it_came) ? request_text(p->args) : json_string(z));
        json_decref(args);
    }
    set(j, "id", request_text(id));
    set(j, "type", json_string("function"));
    set(j, "function", function);
    json_t *seal = p->seal.len > 0 ? json_loadb(p->seal.ptr, p->seal.len, 0, NULL) : NULL;
    if (seal != NULL)
        set(j, "extra_content", seal);
    return j;
}

static void reasoning_set(struct arena *tmp, const struct request *r, json_t *j,
                          const struct chat_message *m, bool has_calls)
{
    const struct compat *c = r->compat;
    struct str text = joined(tmp, m, CHAT_THINKING);
    bool back = c->back == BACK_ALWAYS || (c->back == BACK_TOOL_TURNS && has_calls);
    if (back && (text.len > 0 || (has_calls && c->reasoning_empty)))
        set(j, c->reasoning == 1 ? "reasoning" : "reasoning_content", request_text(text));
    json_t *extra = m->extra.len > 0 && c->back != BACK_NEVER
                        ? json_loadb(m->extra.ptr, m->extra.len, 0, NULL)
                        : NULL;
    if (json_is_object(extra))
        json_object_update_missing(j, extra);
    json_decref(extra);
}

static json_t *assistant_json(struct arena *tmp, const struct request *r,
                              const struct chat_message *m, const struct ids *ids)
{
    json_t *j = json_object(), *calls = json_array();
    struct str text = joined(tmp, m, CHAT_TEXT);
    size_t n = 0;
    for (size_t i = 0; i < m->n_parts; i++)
        if (m->parts[i].kind == CHAT_CALL)
            json_array_append_new(calls, call_json(r, &m->parts[i], ids->turn[n++]));
    set(j, "role", json_string("assistant"));
    set(j, "content",
        n > 0 && text.len == 0 && r->compat->null_content ? json_null() : request_text(text));
    if (n > 0)
        json_object_set(j, "tool_calls", calls);
    json_decref(calls);
    reasoning_set(tmp, r, j, m, n > 0);
    return j;
}

static void user_add(struct arena *tmp, const struct request *r, json_t *list,
                     const struct chat_message *m, const struct ids *ids)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n_parts; i++) {
        if (m->parts[i].kind != CHAT_RESULT)
            continue;
        json_t *j = json_object();
        set(j, "role", json_string("tool"));
        set(j, "tool_call_id", request_text(ids->turn[n++]));
        if (r->compat->result_name)
            set(j, "name", request_text(m->parts[i].name));
        set(j, "content", request_text(m->parts[i].text));
        json_array_append_new(list, j);
    }
    struct str text = joined(tmp, m, CHAT_TEXT);
    if (text.len > 0) {
        json_t *j = json_object();
        set(j, "role", json_string("user"));
        set(j, "content", request_text(text));
        json_array_append_new(list, j);
    }
}

static json_t *messages_json(struct arena *tmp, const struct request *r, const struct chat *chat)
{
    json_t *list = json_array();
    struct ids ids = { .arena = tmp, .form = (enum compat_ids)r->compat->ids };
    if (chat->system.len > 0) {
        json_t *j = json_object();
        set(j, "role", json_string(r->compat->developer_role ? "developer" : "system"));
        set(j, "content", request_text(chat->system));
        json_array_append_new(list, j);
    }
    for (size_t i = 0; i < chat->n_messages; i++) {
        const struct chat_message *m = &chat->messages[i];
        if (m->role == CHAT_USER) {
            user_add(tmp, r, list, m, &ids);
        } else {
            ids_turn(&ids, m);
            json_array_append_new(list, assistant_json(tmp, r, m, &ids));
        }
    }
    return list;
}

static void tools_set(json_t *j, const struct request *r, const struct chat *chat)
{
    json_t *list = json_array();
    for (size_t i = 0; i < chat->n_tools; i++) {
        const struct chat_tool *t = &chat->tools[i];
        json_t *f = json_object(), *tool = json_object();
        set(f, "name", request_text(t->name));
        set(f, "description", request_text(t->description));
        set(f, "parameters", json_loadb(t->schema.ptr, t->schema.len, 0, NULL));
        set(tool, "type", json_string("function"));
        set(tool, "function", f);
        json_array_append_new(list, tool);
    }
    if (chat->n_tools > 0) {
        json_object_set(j, "tools", list);
        if (r->compat->tool_choice)
            set(j, "tool_choice", json_string("auto"));
        if (r->compat->parallel_calls)
            set(j, "parallel_tool_calls", json_true());
    }
    json_decref(list);
}

static void thinking_set(json_t *j, const struct compat *c, const struct chat_sampling *s)
{
    static const char *const efforts[] = {
        [CHAT_EFFORT_LOW] = "low", [CHAT_EFFORT_MEDIUM] = "medium", [CHAT_EFFORT_HIGH] = "high"
    };
    if (c->thinking == THINKING_EFFORT && s->effort != CHAT_EFFORT_UNSET)
        set(j, "reasoning_effort", json_string(efforts[s->effort]));
    if (c->thinking == THINKING_TEMPLATE)
        set(j, "chat_template_kwargs",
            json_pack("{s:b, s:b}", "enable_thinking", s->thinking, "preserve_thinking",
                      c->back != BACK_NEVER));
}

static void sampling_set(json_t *j, const struct request *r)
{
    const struct compat *c = r->compat;
    const struct chat_sampling *s = r->sampling;
    bool streamed = c->stream && !r->unstreamed;
    set(j, c->limit == LIMIT_MAX_COMPLETION_TOKENS ? "max_completion_tokens" : "max_tokens",
        json_integer(s->max_tokens));
    if (s->has_temperature && c->temperature)
        set(j, "temperature", json_real(s->temperature));
    if (s->has_top_p && c->top_p)
        set(j, "top_p", json_real(s->top_p));
    if (s->has_seed && c->seed)
        set(j, "seed", json_integer(s->seed));
    if (s->logprobs && c->logprobs)
        set(j, "logprobs", json_true());
    if (s->token_ids && c->token_ids)
        set(j, "return_token_ids", json_true());
    set(j, "stream", json_boolean(streamed));
    if (streamed && c->stream_usage)
        set(j, "stream_options", json_pack("{s:b}", "include_usage", 1));
    thinking_set(j, c, s);
}

json_t *request_openai(struct arena *tmp, const struct request *r, const struct chat *chat)
{
    json_t *j = json_object();
    set(j, "messages", messages_json(tmp, r, chat));
    tools_set(j, r, chat);
    sampling_set(j, r);
    return j;
}
