/* The conversation as it was, and as the model saw it after its context was rewritten. */
#include "agent/trace.h"

struct slot {
    struct chat_message m;
    int64_t index; /* -1: a summary */
    bool gone;
};

struct view {
    struct arena *a;
    struct slot *slot;
    size_t n;
};

static struct slot *slot_find(const struct view *v, int64_t index)
{
    for (size_t i = v->n; i > 0 && index >= 0; i--)
        if (v->slot[i - 1].index == index)
            return &v->slot[i - 1];
    return NULL;
}

static void item_apply(struct view *v, const json_t *item)
{
    struct slot *s = slot_find(v, trace_int(item, "index", -1));
    int64_t part = trace_int(item, "part", -1);
    if (s == NULL || part < 0 || (uint64_t)part >= s->m.n_parts ||
        !json_is_string(json_object_get(item, "text")))
        return;
    struct chat_part *parts = arena_new(v->a, struct chat_part, s->m.n_parts);
    memcpy(parts, s->m.parts, s->m.n_parts * sizeof *parts);
    if (str_eq(trace_text(item, "field"), S("args")))
        parts[part].args = trace_text(item, "text");
    else
        parts[part].text = trace_text(item, "text");
    s->m.parts = parts;
}

/* In the place of the first that went; it stands for earlier summaries, too. */
static void summary_add(struct view *v, size_t place, struct str text)
{
    struct chat_part *part = arena_new(v->a, struct chat_part, 1);
    *part = (struct chat_part){ .kind = CHAT_TEXT, .text = text };
    for (size_t i = 0; i < v->n; i++)
        if (v->slot[i].index < 0) {
            v->slot[i].gone = true;
            place = i < place ? i : place;
        }
    memmove(&v->slot[place + 1], &v->slot[place], (v->n - place) * sizeof *v->slot);
    v->slot[place] =
        (struct slot){ .m = { .role = CHAT_USER, .parts = part, .n_parts = 1 }, .index = -1 };
    v->n++;
}

static void context_apply(struct view *v, const json_t *event)
{
    size_t i, place = v->n;
    json_t *j;
    json_array_foreach(json_object_get(event, "items"), i, j) item_apply(v, j);
    json_array_foreach(json_object_get(event, "dropped"), i, j)
    {
        struct slot *s = slot_find(v, json_is_integer(j) ? (int64_t)json_integer_value(j) : -1);
        if (s == NULL)
            continue;
        s->gone = true;
        place = (size_t)(s - v->slot) < place ? (size_t)(s - v->slot) : place;
    }
    struct str summary = trace_text(event, "summary");
    if (summary.len > 0)
        summary_add(v, place, summary);
}

static struct chat_tool tool_of(struct arena *a, const json_t *row)
{
    const json_t *f = json_object_get(row, "function"), *schema;
    static const char *const names[] = { "parameters", "input_schema", "inputSchema" };
    f = json_is_object(f) ? f : row;
    struct chat_tool t = { .name = trace_text(f, "name"),
                           .description = trace_text(f, "description"),
                           .schema = S("{\"type\":\"object\"}") };
    for (size_t i = 0; i < COUNT(names); i++) {
        schema = json_object_get(f, names[i]);
        own_mem char *text = json_is_object(schema) ? json_dumps(schema, JSON_COMPACT) : NULL;
        if (text != NULL)
            t.schema = str_copy(a, str_from(text));
    }
    return t;
}

static void tools_take(struct arena *a, const struct trace *t, struct chat *ret)
{
    const json_t *rows = json_object_get(t->start, "tools");
    size_t n = json_array_size(rows);
    struct chat_tool *tools = arena_new(a, struct chat_tool, n);
    for (size_t i = 0; i < n; i++) {
        struct chat_tool tool = tool_of(a, json_array_get(rows, i));
        if (tool.name.len > 0)
            tools[ret->n_tools++] = tool;
    }
    ret->tools = tools;
}

void trace_chat(struct arena *a, const struct trace *t, enum trace_view view, struct chat *ret)
{
    struct view v = { .a = a, .slot = arena_new(a, struct slot, t->n_messages + t->n_events) };
    size_t next = 0;
    for (size_t i = 0; i < t->n_events; i++) {
        for (; next < t->n_messages && t->message[next].at <= i; next++)
            v.slot[v.n++] =
                (struct slot){ .m = t->message[next].chat, .index = t->message[next].index };
        if (view == TRACE_SEEN && trace_is(t->event[i], "context"))
            context_apply(&v, t->event[i]);
    }
    *ret = (struct chat){ .system = trace_text(t->start, "system") };
    struct chat_message *messages = arena_new(a, struct chat_message, v.n);
    for (size_t i = 0; i < v.n; i++)
        if (!v.slot[i].gone)
            messages[ret->n_messages++] = v.slot[i].m;
    ret->messages = messages;
    tools_take(a, t, ret);
}
