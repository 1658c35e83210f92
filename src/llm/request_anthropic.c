/* The body of a request to /v1/messages. */
#include "core/own.h"
#include "llm/request.h"

/* The smallest budget for thinking that is accepted. */
#define BUDGET_MIN 1024

static void set(json_t *obj, const char *key, json_t *v)
{
    json_object_set_new(obj, key, v);
}

static void cache_here(const struct request *r, json_t *block)
{
    if (r->compat->cache_control)
        set(block, "cache_control", json_pack("{s:s}", "type", "ephemeral"));
}

static json_t *text_block(struct str text)
{
    json_t *j = json_object();
    set(j, "type", json_string("text"));
    set(j, "text", request_text(text));
    return j;
}

static json_t *call_block(const struct chat_part *p, struct str id)
{
    json_t *j = json_object();
    set(j, "type", json_string("tool_use"));
    set(j, "id", request_text(id));
    set(j, "name", request_text(p->name));
    set(j, "input", request_args(p->args));
    return j;
}

static json_t *result_block(const struct chat_part *p, struct str id)
{
    json_t *j = json_object();
    set(j, "type", json_string("tool_result"));
    set(j, "tool_use_id", request_text(id));
    set(j, "content", request_text(p->text));
    if (p->is_error)
        set(j, "is_error", json_true());
    return j;
}

/* Thinking goes back as it came; unsigned, it is another model's, and only words. NULL: left out.
 */
static json_t *thinking_block(const struct request *r, const struct chat_part *p, bool has_calls)
{
    const struct compat *c = r->compat;
    bool back = c->back == BACK_ALWAYS || (c->back == BACK_TOOL_TURNS && has_calls);
    json_t *j;
    if (!back)
        return NULL;
    if (p->kind == CHAT_THINKING && p->seal.len == 0)
        return c->thinking_text ? text_block(p->text) : NULL;
    j = json_object();
    if (p->kind == CHAT_SEALED) {
        set(j, "type", json_string("redacted_thinking"));
        set(j, "data", request_text(p->text));
    } else {
        set(j, "type", json_string("thinking"));
        set(j, "thinking", request_text(p->text));
        set(j, "signature", request_text(p->seal));
    }
    return j;
}

static json_t *blocks_json(const struct request *r, const struct chat_message *m,
                           const struct ids *ids)
{
    json_t *list = json_array();
    size_t n = 0;
    bool has_calls = false;
    for (size_t i = 0; i < m->n_parts; i++)
        has_calls = has_calls || m->parts[i].kind == CHAT_CALL;
    for (size_t i = 0; i < m->n_parts; i++) {
        const struct chat_part *p = &m->parts[i];
        json_t *block = NULL;
        switch (p->kind) {
        case CHAT_TEXT:
            block = text_block(p->text);
            break;
        case CHAT_THINKING:
        case CHAT_SEALED:
            block = thinking_block(r, p, has_calls);
            break;
        case CHAT_CALL:
            block = call_block(p, ids->turn[n++]);
            break;
        case CHAT_RESULT:
            block = result_block(p, ids->turn[n++]);
            break;
        }
        if (block != NULL)
            json_array_append_new(list, block);
    }
    return list;
}

static json_t *message_json(const char *role, json_t *content)
{
    json_t *j = json_object();
    set(j, "role", json_string(role));
    set(j, "content", content);
    return j;
}

static json_t *messages_json(struct arena *tmp, const struct request *r, const struct chat *chat)
{
    json_t *list = json_array();
    struct ids ids = { .arena = tmp, .form = (enum compat_ids)r->compat->ids };
    /* The user speaks first, always. */
    if (chat->n_messages == 0 || chat->messages[0].role != CHAT_USER) {
        json_t *first = json_array();
        json_array_append_new(first, text_block(S("Go on.")));
        json_array_append_new(list, message_json("user", first));
    }
    for (size_t i = 0; i < chat->n_messages; i++) {
        const struct chat_message *m = &chat->messages[i];
        if (m->role == CHAT_ASSISTANT)
            ids_turn(&ids, m);
        json_t *content = blocks_json(r, m, &ids);
        if (i + 1 == chat->n_messages && m->role == CHAT_USER)
            cache_here(r, json_array_get(content, json_array_size(content) - 1));
        json_array_append_new(list,
                              message_json(m->role == CHAT_USER ? "user" : "assistant", content));
    }
    return list;
}

static bool has_calls(const struct chat *chat)
{
    for (size_t i = 0; i < chat->n_messages; i++)
        for (size_t k = 0; k < chat->messages[i].n_parts; k++)
            if (chat->messages[i].parts[k].kind == CHAT_CALL)
                return true;
    return false;
}

static void tools_set(json_t *j, const struct request *r, const struct chat *chat)
{
    json_t *list = json_array();
    for (size_t i = 0; i < chat->n_tools; i++) {
        const struct chat_tool *t = &chat->tools[i];
        json_t *tool = json_object();
        set(tool, "name", request_text(t->name));
        set(tool, "description", request_text(t->description));
        set(tool, "input_schema", json_loadb(t->schema.ptr, t->schema.len, 0, NULL));
        if (i + 1 == chat->n_tools)
            cache_here(r, tool);
        json_array_append_new(list, tool);
    }
    /* A history with calls and no tools is refused; an empty list is not. */
    if (chat->n_tools > 0 || has_calls(chat))
        json_object_set(j, "tools", list);
    if (chat->n_tools > 0 && r->compat->tool_choice)
        set(j, "tool_choice", json_pack("{s:s}", "type", "auto"));
    json_decref(list);
}

static bool thinking_set(json_t *j, const struct request *r)
{
    const struct chat_sampling *s = r->sampling;
    int64_t budget = s->thinking_tokens > BUDGET_MIN ? s->thinking_tokens : BUDGET_MIN;
    if (!s->thinking)
        return false;
    if (r->compat->thinking == THINKING_ADAPTIVE) {
        set(j, "thinking", json_pack("{s:s}", "type", "adaptive"));
    } else if (r->compat->thinking == THINKING_BUDGET && s->max_tokens > BUDGET_MIN) {
        budget = budget < s->max_tokens ? budget : s->max_tokens - 1;
        set(j, "thinking",
            json_pack("{s:s, s:I}", "type", "enabled", "budget_tokens", (json_int_t)budget));
    } else {
        return false;
    }
    return true;
}

json_t *request_anthropic(struct arena *tmp, const struct request *r, const struct chat *chat)
{
    const struct chat_sampling *s = r->sampling;
    json_t *j = json_object();
    if (chat->system.len > 0) {
        json_t *block = text_block(chat->system), *list = json_array();
        cache_here(r, block);
        json_array_append_new(list, block);
        set(j, "system", list);
    }
    set(j, "messages", messages_json(tmp, r, chat));
    tools_set(j, r, chat);
    set(j, "max_tokens", json_integer(s->max_tokens));
    set(j, "stream", json_boolean(r->compat->stream && !r->unstreamed));
    /* With thinking, only the default temperature is taken. */
    if (!thinking_set(j, r)) {
        if (s->has_temperature && r->compat->temperature)
            set(j, "temperature", json_real(s->temperature));
        if (s->has_top_p && r->compat->top_p)
            set(j, "top_p", json_real(s->top_p));
    }
    return j;
}
