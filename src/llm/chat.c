#include "llm/chat.h"

#include <strings.h>

#include "llm/wire.h"

/* ---- the tool that is meant ---- */

static const struct chat_tool *tool_named(const struct chat_tool *tools, size_t n, struct str name)
{
    for (size_t i = 0; i < n; i++)
        if (tools[i].name.len == name.len &&
            strncasecmp(tools[i].name.ptr, name.ptr, name.len) == 0)
            return &tools[i];
    return NULL;
}

const struct chat_tool *chat_tool_find(const struct chat_tool *tools, size_t n, struct str name)
{
    /* Names from other harnesses that models were trained in. */
    static const struct {
        const char *name, *ours;
    } others[] = {
        { "execute_bash", "Bash" }, { "shell", "Bash" },       { "run_bash", "Bash" },
        { "run_command", "Bash" },  { "terminal", "Bash" },    { "read_file", "Read" },
        { "view", "Read" },         { "write_file", "Write" }, { "create_file", "Write" },
        { "edit_file", "Edit" },    { "str_replace", "Edit" }, { "list_files", "Glob" },
    };
    for (size_t i = 0; i < n; i++)
        if (str_eq(tools[i].name, name))
            return &tools[i];
    const struct chat_tool *t = name.len > 0 ? tool_named(tools, n, name) : NULL;
    for (size_t i = 0; t == NULL && i < COUNT(others); i++)
        if (wire_same(name, others[i].name))
            t = tool_named(tools, n, str_from(others[i].ours));
    return t;
}

/* ---- a conversation that servers take ---- */

struct run {
    const struct chat_message *m;
    size_t n, n_parts;
};

struct builder {
    struct arena *arena;
    struct chat_message *m; /* at most two for each that came in, and one more */
    size_t n;
};

static bool part_counts(const struct chat_part *p)
{
    switch (p->kind) {
    case CHAT_TEXT:
        return str_trim(p->text).len > 0;
    case CHAT_THINKING:
    case CHAT_SEALED:
        return p->text.len > 0 || p->seal.len > 0;
    case CHAT_CALL:
    case CHAT_RESULT:
        return true;
    }
    return false;
}

static struct chat_part result_of(const struct chat_part *call, const struct run *run, bool *used)
{
    size_t at = 0;
    for (size_t i = 0; i < run->n; i++)
        for (size_t k = 0; k < run->m[i].n_parts; k++, at++) {
            const struct chat_part *p = &run->m[i].parts[k];
            if (p->kind != CHAT_RESULT || used[at] || !str_eq(p->id, call->id))
                continue;
            used[at] = true;
            struct chat_part result = *p;
            result.name = call->name;
            return result;
        }
    return (struct chat_part){ .kind = CHAT_RESULT,
                               .is_error = true,
                               .id = call->id,
                               .name = call->name,
                               .text = S("This call was not carried out: there is no result.") };
}

/* A run of the user's messages becomes one: results in the order of the calls, then the rest. */
static void user_add(struct builder *b, const struct run *run)
{
    const struct chat_message *before = b->n > 0 ? &b->m[b->n - 1] : NULL;
    size_t n_calls = 0, n = 0;
    for (size_t i = 0; before != NULL && i < before->n_parts; i++)
        n_calls += before->parts[i].kind == CHAT_CALL;
    struct chat_part *parts = arena_new(b->arena, struct chat_part, run->n_parts + n_calls);
    bool *used = arena_new(b->arena, bool, run->n_parts);
    for (size_t i = 0; n < n_calls; i++)
        if (before->parts[i].kind == CHAT_CALL)
            parts[n++] = result_of(&before->parts[i], run, used);
    for (size_t i = 0; i < run->n; i++)
        for (size_t k = 0; k < run->m[i].n_parts; k++)
            if (run->m[i].parts[k].kind == CHAT_TEXT && part_counts(&run->m[i].parts[k]))
                parts[n++] = run->m[i].parts[k];
    if (n > 0)
        b->m[b->n++] = (struct chat_message){ .role = CHAT_USER, .parts = parts, .n_parts = n };
}

static bool has_substance(const struct chat_message *m)
{
    for (size_t i = 0; i < m->n_parts; i++)
        if ((m->parts[i].kind == CHAT_TEXT || m->parts[i].kind == CHAT_CALL) &&
            part_counts(&m->parts[i]))
            return true;
    return false;
}

/* The parts of `m` behind those of the assistant's message before it, or a message of their own. */
static void assistant_add(struct builder *b, const struct chat_message *m)
{
    struct chat_message *to =
        b->n > 0 && b->m[b->n - 1].role == CHAT_ASSISTANT ? &b->m[b->n - 1] : NULL;
    size_t n = to ? to->n_parts : 0;
    struct chat_part *parts = arena_new(b->arena, struct chat_part, n + m->n_parts);
    if (n > 0)
        memcpy(parts, to->parts, n * sizeof *parts);
    for (size_t i = 0; i < m->n_parts; i++)
        if (m->parts[i].kind != CHAT_RESULT && part_counts(&m->parts[i]))
            parts[n++] = m->parts[i];
    if (to == NULL)
        to = &b->m[b->n++];
    struct str extra = to->extra.len > 0 ? to->extra : m->extra;
    *to = (struct chat_message){
        .role = CHAT_ASSISTANT, .parts = parts, .n_parts = n, .extra = extra
    };
}

static bool waits_for_results(const struct builder *b)
{
    const struct chat_message *last = b->n > 0 ? &b->m[b->n - 1] : NULL;
    for (size_t i = 0; last != NULL && last->role == CHAT_ASSISTANT && i < last->n_parts; i++)
        if (last->parts[i].kind == CHAT_CALL)
            return true;
    return false;
}

static bool is_user(const struct chat_message *m)
{
    return m->role == CHAT_USER;
}

/* Without the turns that are never sent. */
static struct chat_message *turns_kept(struct arena *a, const struct chat *in, size_t *ret_n)
{
    struct chat_message *kept = arena_new(a, struct chat_message, in->n_messages);
    size_t n = 0;
    for (size_t i = 0; i < in->n_messages; i++) {
        const struct chat_message *m = &in->messages[i];
        if (is_user(m) || (!m->aborted && has_substance(m)))
            kept[n++] = *m;
    }
    *ret_n = n;
    return kept;
}

void chat_normalise(struct arena *a, const struct chat *in, struct chat *ret)
{
    size_t n, i = 0;
    const struct chat_message *kept = turns_kept(a, in, &n);
    struct builder b = { .arena = a, .m = arena_new(a, struct chat_message, 2 * n + 1) };
    while (i < n) {
        struct run run = { .m = &kept[i] };
        for (; i < n && is_user(&kept[i]); i++, run.n++)
            run.n_parts += kept[i].n_parts;
        if (run.n > 0 || waits_for_results(&b))
            user_add(&b, &run);
        if (i < n)
            assistant_add(&b, &kept[i++]);
    }
    if (waits_for_results(&b))
        user_add(&b, &(struct run){ 0 });
    struct chat out = *in;
    out.messages = b.m;
    out.n_messages = b.n;
    *ret = out;
}
