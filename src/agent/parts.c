#include "agent/parts.h"

#include "core/json.h"
#include "llm/wire.h"

#define WHOLE_MAX ((json_int_t)1 << 53)

static const char *const kinds[] = { [CHAT_TEXT] = "text",
                                     [CHAT_THINKING] = "thinking",
                                     [CHAT_SEALED] = "sealed",
                                     [CHAT_CALL] = "call",
                                     [CHAT_RESULT] = "result" };

json_t *text_json(struct str s)
{
    own_arena tmp = { 0 };
    json_t *j = json_stringn(s.ptr ? s.ptr : "", s.len);
    if (j != NULL && memchr(s.ptr ? s.ptr : "", '\0', s.len) == NULL)
        return j;
    json_decref(j);
    struct str clean = wire_clean(&tmp, s);
    return json_stringn(clean.ptr ? clean.ptr : "", clean.len);
}

static void set(json_t *j, const char *key, struct str s)
{
    if (s.len > 0)
        json_object_set_new(j, key, text_json(s));
}

json_t *part_json(const struct chat_part *p)
{
    json_t *j = json_pack("{s:s}", "kind", kinds[p->kind]);
    set(j, "text", p->text);
    set(j, "id", p->id);
    set(j, "name", p->name);
    set(j, "args", p->args);
    set(j, "seal", p->seal);
    if (p->is_error)
        json_object_set_new(j, "is_error", json_true());
    return j;
}

json_t *parts_json(const struct chat_part *parts, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, part_json(&parts[i]));
    return list;
}

json_t *parts_text(struct str text)
{
    struct chat_part p = { .kind = CHAT_TEXT, .text = text };
    return parts_json(&p, 1);
}

struct str member_text(const json_t *obj, const char *key)
{
    const json_t *j = json_object_get(obj, key);
    return (struct str){ json_is_string(j) ? json_string_value(j) : "", json_string_length(j) };
}

int64_t member_int(const json_t *obj, const char *key)
{
    json_int_t i = json_integer_value(json_object_get(obj, key));
    return i > WHOLE_MAX ? WHOLE_MAX : i < -WHOLE_MAX ? -WHOLE_MAX : i;
}

static enum err_code part_read(struct arena *a, const json_t *j, struct chat_part *ret,
                               struct err *err)
{
    struct str kind = member_text(j, "kind");
    for (size_t k = 0; k < COUNT(kinds); k++) {
        if (!str_eq(kind, str_from(kinds[k])))
            continue;
        *ret = (struct chat_part){ .kind = (enum chat_kind)k,
                                   .is_error = json_is_true(json_object_get(j, "is_error")),
                                   .text = str_copy(a, member_text(j, "text")),
                                   .id = str_copy(a, member_text(j, "id")),
                                   .name = str_copy(a, member_text(j, "name")),
                                   .args = str_copy(a, member_text(j, "args")),
                                   .seal = str_copy(a, member_text(j, "seal")) };
        return OK;
    }
    return err_raise(err, ERR_FORMAT, "a part of the kind '%.*s'",
                     (int)(kind.len < 40 ? kind.len : 40), kind.ptr);
}

enum err_code parts_read(struct arena *a, const json_t *list, struct chat_part **ret, size_t *ret_n,
                         struct err *err)
{
    size_t n = json_array_size(list);
    struct chat_part *parts = arena_new(a, struct chat_part, n);
    for (size_t i = 0; i < n; i++)
        if (part_read(a, json_array_get(list, i), &parts[i], err) != OK)
            return err->code;
    *ret = parts;
    *ret_n = n;
    return OK;
}

/* ---- answers ---- */

static json_t *usage_json(const struct reply_usage *u)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:b}", "input_total", (json_int_t)u->input_total,
                     "input_cached", (json_int_t)u->input_cached, "input_cache_write",
                     (json_int_t)u->input_cache_write, "output_total", (json_int_t)u->output_total,
                     "reasoning", (json_int_t)u->reasoning, "estimated", u->estimated);
}

json_t *response_json(const struct reply *r)
{
    struct reply brief = *r; /* reply_json knows the names of notes and faults; the rest is ours */
    brief.tokens = (struct reply_tokens){ 0 };
    brief.text = brief.reasoning = (struct str){ 0 };
    brief.message = (struct chat_message){ 0 };
    brief.n_calls = 0;
    own_json all = reply_json(&brief);
    json_t *j =
        json_pack("{s:s, s:O, s:o, s:o}", "end", reply_end_name(r->end), "notes",
                  json_object_get(all, "notes"), "parts",
                  parts_json(r->message.parts, r->message.n_parts), "usage", usage_json(&r->usage));
    json_object_set_new(j, "refused_by",
                        json_string(r->end == REPLY_REFUSED ? refused_name(r->refused_by) : "no"));
    set(j, "extra", r->message.extra);
    set(j, "model", r->model);
    set(j, "stop_text", r->stop_text);
    set(j, "refusal", r->refusal);
    if (r->fault.kind != FAULT_NONE)
        json_object_set(j, "fault", json_object_get(all, "fault"));
    return j;
}

static int named(const char *const *names, size_t n, struct str name, int absent)
{
    for (size_t i = 0; i < n; i++)
        if (names[i] != NULL && str_eq(name, str_from(names[i])))
            return (int)i;
    return absent;
}

static unsigned notes_read(const json_t *list)
{
    static const struct {
        unsigned bit;
        const char *name;
    } rows[] = {
#define X(id, name, bit) { id, name },
        REPLY_NOTES(X)
#undef X
    };
    unsigned notes = 0;
    size_t i;
    const json_t *j;
    json_array_foreach(list, i, j)
    {
        for (size_t k = 0; k < COUNT(rows); k++)
            if (json_is_string(j) && strcmp(json_string_value(j), rows[k].name) == 0)
                notes |= rows[k].bit;
    }
    return notes;
}

static void fault_read(struct arena *a, const json_t *j, struct fault *ret)
{
    static const char *const names[] = {
#define X(id, name, again) [id] = name,
        FAULTS(X)
#undef X
    };
    *ret = (struct fault){ .kind = (enum fault_kind)named(names, COUNT(names),
                                                          member_text(j, "kind"), FAULT_NONE),
                           .status = (int)member_int(j, "status"),
                           .message = str_copy(a, member_text(j, "message")),
                           .param = str_copy(a, member_text(j, "param")) };
}

/* Text and calls of the message, as an assembly would have left them. */
static void gist_read(struct arena *a, struct reply *r)
{
    struct buf text = { .arena = a, .max = ASSEMBLY_BYTES_MAX };
    r->calls = arena_new(a, struct reply_call, r->message.n_parts);
    for (size_t i = 0; i < r->message.n_parts; i++) {
        const struct chat_part *p = &r->message.parts[i];
        if (p->kind == CHAT_TEXT)
            buf_add(&text, p->text);
        if (p->kind == CHAT_CALL)
            r->calls[r->n_calls++] = (struct reply_call){
                .id = p->id, .name = p->name, .args = p->args, .seal = p->seal
            };
    }
    r->text = (struct str){ text.ptr, text.len };
}

enum err_code response_read(struct arena *a, const json_t *event, struct reply *ret,
                            struct err *err)
{
    static const char *const ends[] = {
#define X(id, name) [id] = name,
        REPLY_ENDS(X)
#undef X
    };
    static const char *const refusals[] = {
#define X(id, name) [id] = name,
        REFUSALS(X)
#undef X
    };
    const json_t *u = json_object_get(event, "usage");
    struct chat_part *parts;
    struct reply r = {
        .end = (enum reply_end)named(ends, COUNT(ends), member_text(event, "end"), REPLY_FAILED),
        .refused_by = (enum refused_by)named(refusals, COUNT(refusals),
                                             member_text(event, "refused_by"), REFUSED_NOT),
        .notes = notes_read(json_object_get(event, "notes")),
        .refusal = str_copy(a, member_text(event, "refusal")),
        .model = str_copy(a, member_text(event, "model")),
        .stop_text = str_copy(a, member_text(event, "stop_text")),
        .message = { .role = CHAT_ASSISTANT, .extra = str_copy(a, member_text(event, "extra")) },
        .usage = { .estimated = json_is_true(json_object_get(u, "estimated")),
                   .input_total = member_int(u, "input_total"),
                   .input_cached = member_int(u, "input_cached"),
                   .input_cache_write = member_int(u, "input_cache_write"),
                   .output_total = member_int(u, "output_total"),
                   .reasoning = member_int(u, "reasoning") }
    };
    if (parts_read(a, json_object_get(event, "parts"), &parts, &r.message.n_parts, err) != OK)
        return err->code;
    r.message.parts = parts;
    gist_read(a, &r);
    if (json_object_get(event, "fault") != NULL)
        fault_read(a, json_object_get(event, "fault"), &r.fault);
    *ret = r;
    return OK;
}
