#include "agent/transcript.h"

#include <stdlib.h>

#include "agent/parts.h"
#include "agent/transcript_int.h"
#include "core/json.h"

#define TOKEN_BYTES 3.2 /* of source code, about; until a server has counted */
#define TOKEN_BYTES_MIN 1.5
#define TOKEN_BYTES_MAX 8.0
#define PART_BYTES 24 /* of the wire around a part's texts, about */
#define WORKSPACE_HEAD "/workspace/"

/* ---- life ---- */

void transcript_init(struct transcript *t)
{
    *t = (struct transcript){ .bytes_per_token = TOKEN_BYTES, .todo_turn = -1 };
    t->cleanup[0].turn = t->cleanup[1].turn = -1;
    t->seen = json_object();
    t->flight.index = -1;
}

static void flight_clear(struct flight *f)
{
    json_decref(f->touched);
    f->touched = NULL;
    f->n_results = 0; /* the memory is kept for the next turn */
    f->open = f->answered = f->summary = false;
    f->index = -1;
    f->used = (struct totals){ 0 };
}

void transcript_fini(struct transcript *t)
{
    for (size_t i = 0; i < t->n_graded; i++) {
        free((char *)(uintptr_t)t->graded[i].step);
        free((char *)(uintptr_t)t->graded[i].status);
        free((char *)(uintptr_t)t->graded[i].candidate);
        free((char *)(uintptr_t)t->graded[i].idea);
    }
    flight_clear(&t->flight);
    free(t->flight.result);
    free(t->graded);
    free(t->said);
    free(t->view);
    free(t->fault);
    free(t->todos);
    free(t->cwd);
    free(t->status);
    free(t->reason);
    json_decref(t->best);
    json_decref(t->files);
    json_decref(t->seen);
    arena_fini(&t->arena);
}

enum err_code transcript_grow(void *array, size_t *cap, size_t n, size_t size, struct err *err)
{
    void **at = array;
    if (n < *cap)
        return OK;
    size_t more = *cap ? *cap * 2 : 16;
    void *p = reallocarray(*at, more, size);
    if (p == NULL)
        return err_sys(err, "no memory for %zu entries", more);
    *at = p;
    *cap = more;
    return OK;
}

/* ---- what the model sees ---- */

size_t part_bytes(const struct chat_part *p)
{
    size_t n = p->id.len + p->name.len + p->args.len + p->seal.len + PART_BYTES;
    /* Thoughts without a seal are not sent back, as a rule. */
    return p->kind == CHAT_THINKING && p->seal.len == 0 ? 0 : n + p->text.len;
}

static size_t parts_bytes(const struct chat_part *p, size_t n)
{
    size_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += part_bytes(&p[i]);
    return sum;
}

static enum err_code view_add(struct transcript *t, const struct chat_message *m, struct err *err)
{
    if (transcript_grow(&t->view, &t->cap_view, t->n_view, sizeof *t->view, err) != OK)
        return err->code;
    t->view[t->n_view++] = *m;
    t->bytes += parts_bytes(m->parts, m->n_parts);
    return OK;
}

static enum err_code summary_show(struct transcript *t, size_t before, struct err *err)
{
    if (t->summary.len == 0 || t->summary_at != before)
        return OK;
    t->summary_part = (struct chat_part){ .kind = CHAT_TEXT, .text = t->summary };
    struct chat_message m = { .role = CHAT_USER, .parts = &t->summary_part, .n_parts = 1 };
    return view_add(t, &m, err);
}

enum err_code view_rebuild(struct transcript *t, struct err *err)
{
    t->n_view = t->n_prefix = 0;
    t->prefix = t->prefix_base;
    t->bytes = t->base_bytes;
    for (size_t i = 0; i < t->n; i++) {
        struct said *s = &t->said[i];
        if (summary_show(t, i, err) != OK || (!s->gone && view_add(t, &s->m, err) != OK))
            return err->code;
    }
    return summary_show(t, t->n, err);
}

enum err_code said_add(struct transcript *t, struct said s, struct err *err)
{
    if (transcript_grow(&t->said, &t->cap, t->n, sizeof *t->said, err) != OK)
        return err->code;
    s.m.parts = s.parts;
    s.bytes = parts_bytes(s.parts, s.m.n_parts);
    t->said[t->n++] = s;
    return view_add(t, &s.m, err);
}

const struct chat_part *transcript_call(const struct transcript *t, int64_t index, size_t k)
{
    if (index < 0 || (size_t)index >= t->n)
        return NULL;
    const struct said *s = &t->said[index];
    for (size_t i = 0; i < s->m.n_parts; i++)
        if (s->parts[i].kind == CHAT_CALL && k-- == 0)
            return &s->parts[i];
    return NULL;
}

size_t transcript_calls(const struct transcript *t, int64_t index)
{
    size_t n = 0;
    while (transcript_call(t, index, n) != NULL)
        n++;
    return n;
}

struct str transcript_path(struct str path)
{
    if (str_starts(path, S(WORKSPACE_HEAD)))
        path = str_drop(path, strlen(WORKSPACE_HEAD));
    while (str_starts(path, S("./")))
        path = str_drop(path, 2);
    return path;
}

/* ---- tokens ---- */

int64_t transcript_tokens_of(const struct transcript *t, size_t bytes)
{
    return (int64_t)((double)bytes / t->bytes_per_token) + 1;
}

int64_t transcript_tokens(const struct transcript *t)
{
    double since = (double)t->bytes - (double)t->anchor_bytes;
    double tokens = (double)t->anchor_tokens + since / t->bytes_per_token;
    return tokens < 1 ? 1 : (int64_t)tokens + 1;
}

void tokens_anchor(struct transcript *t, int64_t tokens, size_t bytes)
{
    double ratio = (double)bytes / (double)tokens;
    t->anchor_tokens = tokens;
    t->anchor_bytes = bytes;
    t->bytes_per_token = ratio < TOKEN_BYTES_MIN   ? TOKEN_BYTES_MIN
                         : ratio > TOKEN_BYTES_MAX ? TOKEN_BYTES_MAX
                                                   : ratio;
}

static void prefix_message(struct sha256 *h, const struct chat_message *m)
{
    sha256_part(h, m->role == CHAT_USER ? S("user") : S("assistant"));
    for (size_t i = 0; i < m->n_parts; i++) {
        const struct chat_part *p = &m->parts[i];
        unsigned char kind = (unsigned char)p->kind;
        sha256_add(h, &kind, 1);
        sha256_part(h, p->text);
        sha256_part(h, p->id);
        sha256_part(h, p->name);
        sha256_part(h, p->args);
        sha256_part(h, p->seal);
    }
}

void transcript_prefix(struct transcript *t, char ret[SHA256_HEX])
{
    for (; t->n_prefix < t->n_view; t->n_prefix++)
        prefix_message(&t->prefix, &t->view[t->n_prefix]);
    struct sha256 h = t->prefix;
    sha256_hex(&h, ret);
}

/* ---- memory ---- */

static struct chat_part part_copy(struct arena *a, const struct chat_part *p)
{
    struct chat_part c = *p;
    c.text = str_copy(a, p->text);
    c.id = str_copy(a, p->id);
    c.name = str_copy(a, p->name);
    c.args = str_copy(a, p->args);
    c.seal = str_copy(a, p->seal);
    return c;
}

static void said_move(struct arena *to, struct said *s)
{
    size_t n = s->gone ? 0 : s->m.n_parts;
    struct chat_part *parts = n > 0 ? arena_new(to, struct chat_part, n) : NULL;
    for (size_t i = 0; i < n; i++)
        parts[i] = part_copy(to, &s->parts[i]);
    s->m.extra = s->gone ? (struct str){ 0 } : str_copy(to, s->m.extra);
    s->m.parts = s->parts = parts;
    s->m.n_parts = n;
}

void transcript_compact(struct transcript *t)
{
    struct arena to = { 0 };
    for (size_t i = 0; i < t->n; i++)
        said_move(&to, &t->said[i]);
    t->system = str_copy(&to, t->system);
    t->summary = str_copy(&to, t->summary);
    t->summary_part.text = t->summary;
    arena_fini(&t->arena);
    t->arena = to;
    t->waste = 0;
    /* The view has the same messages as before, in other places. */
    size_t k = 0;
    for (size_t i = 0; i < t->n; i++) {
        k += t->summary.len > 0 && t->summary_at == i;
        if (!t->said[i].gone)
            t->view[k++] = t->said[i].m;
    }
}

void transcript_flight_clear(struct transcript *t)
{
    flight_clear(&t->flight);
}
