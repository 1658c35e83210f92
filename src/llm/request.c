#include "llm/request.h"

#include <ctype.h>

#include "core/own.h"
#include "llm/repair.h"
#include "llm/wire.h"

json_t *request_text(struct str s)
{
    own_arena tmp = { 0 };
    /* jansson looks for valid UTF-8 by itself: what is, as nearly all texts are, is read once. */
    json_t *j = s.len > 0 && memchr(s.ptr, '\0', s.len) != NULL
                    ? NULL
                    : json_stringn(s.ptr ? s.ptr : "", s.len);
    if (j != NULL)
        return j;
    struct str clean = wire_clean(&tmp, s);
    return json_stringn(clean.ptr ? clean.ptr : "", clean.len);
}

json_t *request_args(struct str args)
{
    json_t *j = NULL;
    unsigned repairs;
    struct err err = { 0 };
    if (repair_args(args, NULL, SIZE_MAX, &j, &repairs, &err) == OK)
        return j;
    j = json_object();
    json_object_set_new(j, "unparsed", request_text(args));
    return j;
}

/* ---- ids ---- */

static bool id_fits(enum compat_ids form, struct str id)
{
    static const size_t longest[] = {
        [IDS_ANY] = SIZE_MAX, [IDS_40] = 40, [IDS_ANTHROPIC] = 64, [IDS_9] = 9
    };
    if (id.len == 0 || id.len > longest[form] || (form == IDS_9 && id.len != 9))
        return false;
    for (size_t i = 0; i < id.len && (form == IDS_ANTHROPIC || form == IDS_9); i++) {
        bool mark = form == IDS_ANTHROPIC && (id.ptr[i] == '_' || id.ptr[i] == '-');
        if (!mark && !isalnum((unsigned char)id.ptr[i]))
            return false;
    }
    return true;
}

/* Nine characters of base 62 that follow from the id and a salt (FNV-1a, 64 bits). */
static struct str id_made(struct arena *a, struct str id, uint64_t salt)
{
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    uint64_t h = 0xcbf29ce484222325u ^ salt * 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i < id.len; i++)
        h = (h ^ (unsigned char)id.ptr[i]) * 0x100000001b3u;
    char *made = arena_new(a, char, 10);
    for (size_t i = 0; i < 9; i++, h /= 62)
        made[i] = digits[h % 62];
    return (struct str){ made, 9 };
}

static bool id_used(const struct ids *ids, struct str id)
{
    for (size_t i = 0; i < ids->n_used; i++)
        if (str_eq(ids->used[i], id))
            return true;
    return false;
}

static void id_note(struct ids *ids, struct str id)
{
    if (ids->n_used == ids->cap) {
        size_t cap = ids->cap ? ids->cap * 2 : 64;
        struct str *more = arena_new(ids->arena, struct str, cap);
        if (ids->n_used > 0)
            memcpy(more, ids->used, ids->n_used * sizeof *more);
        ids->used = more;
        ids->cap = cap;
    }
    ids->used[ids->n_used++] = id;
}

void ids_turn(struct ids *ids, const struct chat_message *m)
{
    ids->turn = arena_new(ids->arena, struct str, m->n_parts);
    ids->n_turn = 0;
    for (size_t i = 0; i < m->n_parts; i++) {
        struct str id = m->parts[i].id;
        if (m->parts[i].kind != CHAT_CALL)
            continue;
        /* Anthropic refuses an id that stands twice anywhere; others are given their own back. */
        bool differ = ids->form == IDS_ANTHROPIC;
        uint64_t salt = 0;
        if (!id_fits(ids->form, id) && !(ids->form == IDS_ANY && id.len > 0))
            id = id_made(ids->arena, m->parts[i].id, salt);
        while (differ && id_used(ids, id))
            id = id_made(ids->arena, m->parts[i].id, ++salt);
        if (differ)
            id_note(ids, id);
        ids->turn[ids->n_turn++] = id;
    }
}

/* ---- */

static enum err_code tools_check(const struct chat *chat, struct err *err)
{
    for (size_t i = 0; i < chat->n_tools; i++) {
        json_error_t at;
        struct str s = chat->tools[i].schema;
        own_json j = json_loadb(s.ptr ? s.ptr : "", s.len, 0, &at);
        if (!json_is_object(j))
            return err_raise(err, ERR_FORMAT, "schema of tool '%.*s': %s",
                             STR_FMT(chat->tools[i].name), j ? "not an object" : at.text);
    }
    return OK;
}

enum err_code request_write(const struct request *r, json_t **ret, struct err *err)
{
    own_arena tmp = { 0 };
    struct chat chat;
    if (tools_check(r->chat, err) != OK)
        return err->code;
    chat_normalise(&tmp, r->chat, &chat);
    json_t *j = r->dialect == DIALECT_ANTHROPIC ? request_anthropic(&tmp, r, &chat)
                                                : request_openai(&tmp, r, &chat);
    json_object_set_new(j, "model", json_string(r->model));
    *ret = j;
    return OK;
}
