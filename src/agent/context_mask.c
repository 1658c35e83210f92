/* Which old results and superseded bodies go, and what stands in their place. */
#include <ctype.h>

#include "agent/context.h"
#include "agent/parts.h"
#include "core/json.h"
#include "core/own.h"

#define WORTH_BYTES 300 /* what is shorter stays: its stand-in would not be much less */
#define DIGEST_BYTES 80
#define KEY_LINES 3
#define LINE_BYTES 160
#define STAND_IN_MAX 2000
#define ELIDED "[elided: "

/* A visible call on a file. */
struct touch {
    size_t index;
    struct str path;
    bool read, write;
};

struct masking {
    const struct transcript *t;
    struct arena *arena;
    struct touch *touch;
    size_t n_touches;
    json_t *items;
    size_t saved;
};

/* ---- calls ---- */

static const struct chat_part *call_of_result(const struct transcript *t, size_t index, size_t part)
{
    return index == 0 ? NULL : transcript_call(t, (int64_t)index - 1, part);
}

static json_t *args_of(const struct chat_part *call)
{
    json_t *args = NULL;
    struct err ignored = { 0 };
    if (call == NULL || json_parse(call->args, (size_t)8 << 20, &args, &ignored) != OK)
        return NULL;
    return args;
}

static bool is_one_of(struct str name, const char *const *names)
{
    for (; *names != NULL; names++)
        if (str_eq(name, str_from(*names)))
            return true;
    return false;
}

static size_t calls_count(const struct transcript *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++)
        for (size_t k = 0; k < t->said[i].m.n_parts; k++)
            n += t->said[i].parts[k].kind == CHAT_CALL;
    return n;
}

static void touches_find(struct masking *m)
{
    m->touch = arena_new(m->arena, struct touch, calls_count(m->t));
    for (size_t i = 0; i < m->t->n; i++) {
        const struct said *s = &m->t->said[i];
        for (size_t k = 0; !s->gone && k < s->m.n_parts; k++) {
            const struct chat_part *p = &s->parts[k];
            bool read = str_eq(p->name, S("Read")), write = str_eq(p->name, S("Write"));
            if (p->kind != CHAT_CALL || (!read && !write))
                continue;
            own_json args = args_of(p);
            struct str path = transcript_path(member_text(args, "file_path"));
            m->touch[m->n_touches++] = (struct touch){ i, str_copy(m->arena, path), read, write };
        }
    }
}

/* Whether the file is read, or written, again behind message `after`. */
static bool touched_later(const struct masking *m, size_t after, struct str path, bool write)
{
    for (size_t i = m->n_touches; i-- > 0 && m->touch[i].index > after;)
        if ((write ? m->touch[i].write : m->touch[i].read) && str_eq(m->touch[i].path, path))
            return true;
    return false;
}

static bool is_live(const struct transcript *t, struct str path)
{
    size_t i;
    const json_t *f;
    json_array_foreach(t->files, i, f)
    {
        if (str_eq(member_text(f, "path"), path))
            return true;
    }
    return false;
}

/* ---- what stays ---- */

/* The newest answer about a version that was the best when it came. */
static bool tells_of_kept(const struct transcript *t, int64_t turn)
{
    for (size_t i = 0; i < t->n_graded; i++) {
        const struct graded *g = &t->graded[i];
        bool newest = g->turn == turn && g->best;
        for (size_t k = i + 1; newest && k < t->n_graded; k++)
            newest = strcmp(t->graded[k].candidate, g->candidate) != 0 ||
                     strcmp(t->graded[k].step, g->step) != 0;
        if (newest)
            return true;
    }
    return false;
}

static bool result_stays(const struct masking *m, size_t index, size_t part)
{
    static const char *const exam[] = { "compile", "verify", "profile", "tune", NULL };
    const struct transcript *t = m->t;
    const struct said *s = &t->said[index];
    const struct chat_part *p = &s->parts[part], *call = call_of_result(t, index, part);
    if (p->kind != CHAT_RESULT || p->text.len < WORTH_BYTES || str_starts(p->text, S(ELIDED)))
        return true;
    if (is_one_of(p->name, exam))
        return tells_of_kept(t, s->turn);
    if (!str_eq(p->name, S("Read")))
        return false;
    own_json args = args_of(call);
    struct str path = transcript_path(member_text(args, "file_path"));
    return is_live(t, path) && !touched_later(m, index, path, false);
}

/* ---- what takes its place ---- */

static bool holds_word(struct str line, const char *word)
{
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= line.len; i++) {
        size_t k = 0;
        while (k < n && tolower((unsigned char)line.ptr[i + k]) == word[k])
            k++;
        if (k == n)
            return true;
    }
    return false;
}

static void line_tell(struct buf *b, struct str line)
{
    line = str_trim(line);
    bool cut = line.len > LINE_BYTES;
    size_t n = cut ? LINE_BYTES : line.len;
    while (cut && n > 0 && ((unsigned char)line.ptr[n] & 0xc0) == 0x80)
        n--; /* not through a character */
    buf_addz(b, ", \"");
    buf_add(b, (struct str){ line.ptr, n });
    buf_addz(b, cut ? "...\"" : "\"");
}

static void key_lines(struct buf *b, struct str text)
{
    struct str rest = text, line, last = { 0 };
    size_t told = 0, lines = 0;
    struct buf keys = { .arena = b->arena, .max = STAND_IN_MAX };
    for (; str_cut(&rest, '\n', &line); lines++) {
        bool key = holds_word(line, "error") || holds_word(line, "wrong");
        if (key && told++ < KEY_LINES)
            line_tell(&keys, line);
        if (str_trim(line).len > 0)
            last = line;
    }
    buf_addf(b, ", %zu lines", lines);
    buf_add(b, (struct str){ keys.ptr, keys.len });
    if (told == 0 || last.ptr[0] == '[') /* a command's last line is its end */
        line_tell(b, last);
}

static void spill_tell(struct buf *b, struct str text)
{
    static const char head[] = "/tool-output/";
    const char *at = memmem(text.ptr, text.len, head, strlen(head));
    size_t n = strlen(head);
    if (at == NULL)
        return;
    while (at + n < text.ptr + text.len &&
           (isalnum((unsigned char)at[n]) || at[n] == '-' || at[n] == '_' || at[n] == '.'))
        n++;
    buf_addf(b, "; full text at %.*s", (int)n, at);
}

static void item_add(struct masking *m, size_t index, size_t part, const char *field,
                     struct str now, struct str text)
{
    if (text.len >= now.len)
        return;
    json_array_append_new(m->items,
                          json_pack("{s:I, s:I, s:s, s:o}", "index", (json_int_t)index, "part",
                                    (json_int_t)part, "field", field, "text", text_json(text)));
    m->saved += now.len - text.len;
}

static void result_mask(struct masking *m, size_t index, size_t part)
{
    own_arena tmp = { 0 };
    const struct chat_part *p = &m->t->said[index].parts[part];
    const struct chat_part *call = call_of_result(m->t, index, part);
    struct buf b = { .arena = &tmp, .max = STAND_IN_MAX };
    if (result_stays(m, index, part))
        return;
    struct str args = call ? call->args : S("");
    size_t n = args.len < DIGEST_BYTES ? args.len : DIGEST_BYTES;
    while (n < args.len && n > 0 && ((unsigned char)args.ptr[n] & 0xc0) == 0x80)
        n--;
    buf_addf(&b, ELIDED "%.*s %.*s%s", STR_FMT(p->name), (int)n, args.ptr ? args.ptr : "",
             n < args.len ? "..." : "");
    key_lines(&b, p->text);
    spill_tell(&b, p->text);
    buf_addz(&b, "]");
    item_add(m, index, part, "text", p->text, (struct str){ b.ptr, b.len });
}

static size_t lines_of(struct str s)
{
    size_t n = 0;
    struct str line;
    while (str_cut(&s, '\n', &line))
        n++;
    return n;
}

/* A body becomes path, hash and lines, where a later Write made it void. */
static void body_mask(struct masking *m, size_t index, size_t part)
{
    static const char *const bodies[] = { "Write", "Edit", "MultiEdit", NULL };
    const struct chat_part *p = &m->t->said[index].parts[part];
    if (p->kind != CHAT_CALL || !is_one_of(p->name, bodies) || p->args.len < WORTH_BYTES ||
        p->seal.len > 0)
        return;
    own_arena tmp = { 0 };
    own_json args = args_of(p);
    struct str file = member_text(args, "file_path");
    if (args == NULL || !touched_later(m, index, transcript_path(file), true))
        return;
    char hash[SHA256_HEX];
    struct str body = str_eq(p->name, S("Write")) ? member_text(args, "content") : p->args;
    if (str_starts(body, S(ELIDED)))
        return;
    sha256_text(body, hash);
    const char *word = arena_fmt(&tmp, ELIDED "%zu lines, SHA-256 %.16s; written anew since]",
                                 lines_of(body), hash);
    bool write = str_eq(p->name, S("Write")), edit = str_eq(p->name, S("Edit"));
    own_json brief = json_pack("{s:o, s:s}", "file_path", text_json(file),
                               write  ? "content"
                               : edit ? "new_string"
                                      : "edits",
                               word);
    if (edit)
        json_object_set_new(brief, "old_string", json_string("[elided]"));
    own_mem char *text = json_dumps(brief, JSON_COMPACT);
    if (text != NULL)
        item_add(m, index, part, "args", p->args, str_from(text));
}

json_t *context_mask(const struct transcript *t)
{
    own_arena tmp = { 0 };
    struct masking m = { .t = t, .arena = &tmp, .items = json_array() };
    touches_find(&m);
    for (size_t i = 0; i < t->n; i++) {
        const struct said *s = &t->said[i];
        if (s->gone || s->turn >= t->next_turn - CONTEXT_RECENT)
            continue;
        for (size_t k = 0; k < s->m.n_parts; k++) {
            if (s->by == SAID_RESULTS)
                result_mask(&m, i, k);
            if (s->by == SAID_ANSWER)
                body_mask(&m, i, k);
        }
    }
    if (m.saved == 0) {
        json_decref(m.items);
        return NULL;
    }
    int64_t before = transcript_tokens(t);
    int64_t after = before - (int64_t)((double)m.saved / t->bytes_per_token);
    return json_pack("{s:I, s:s, s:I, s:I, s:o, s:[], s:s}", "turn", (json_int_t)t->next_turn,
                     "kind", "mask", "before", (json_int_t)before, "after",
                     (json_int_t)(after < 1 ? 1 : after), "items", m.items, "dropped", "summary",
                     "");
}
