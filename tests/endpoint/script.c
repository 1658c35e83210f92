#include "endpoint/script.h"

#include <stdio.h>

#include "sys/file.h"

#define FILE_MAX ((size_t)16 << 20)
#define TURNS_MAX 4096 /* ids of calls have three digits for a turn */
#define WINDOW_DEFAULT 131072

/* ---- reading ---- */

static const char *const end_names[] = {
#define X(id, name) name,
    ENDS(X)
#undef X
        NULL
};
static const char *const trouble_names[] = {
#define X(id, name, status) name,
    TROUBLES(X)
#undef X
        NULL
};
static const char *const piece_names[] = { "tokens", "words", "whole", NULL };

struct reader {
    struct arena *arena;
    const char *dir;     /* of the script: files lie beside it */
    const json_t *turns; /* of the file: names are looked up in it */
    struct err *err;
};

/* Keys that no row has are mistakes. */
static enum err_code keys_check(struct reader *r, const json_t *o, const char *known,
                                const char *where)
{
    const char *key;
    json_t *v;
    if (!json_is_object(o))
        return err_raise(r->err, ERR_FORMAT, "%s: wanted an object", where);
    json_object_foreach((json_t *)o, key, v)
    {
        const char *at = strstr(known, arena_fmt(r->arena, " %s ", key));
        if (at == NULL)
            return err_raise(r->err, ERR_FORMAT, "%s: unknown key '%s'; known:%s", where, key,
                             known);
    }
    return OK;
}

static enum err_code choice_read(struct reader *r, const json_t *o, const char *key,
                                 const char *const *names, int *to)
{
    struct field f = FIELD_CHOICE(key, to, names, "");
    const json_t *v = json_object_get(o, key);
    return v == NULL ? OK : field_set(&f, str_from(json_string_value(v)), r->err);
}

static enum err_code number_read(struct reader *r, const json_t *o, const char *key, int64_t *to)
{
    const json_t *v = json_object_get(o, key);
    if (v != NULL && !json_is_integer(v))
        return err_raise(r->err, ERR_FORMAT, "%s: wanted a whole number", key);
    if (v != NULL)
        *to = json_integer_value(v);
    return OK;
}

static enum err_code turn_find(struct reader *r, const json_t *name, size_t *ret)
{
    const json_t *t;
    size_t i;
    json_array_foreach(r->turns, i,
                       t) if (json_is_string(name) && json_equal(json_object_get(t, "name"), name))
    {
        *ret = i;
        return OK;
    }
    return err_raise(r->err, ERR_FORMAT, "no turn '%s'",
                     json_is_string(name) ? json_string_value(name) : "");
}

static enum err_code jump_read(struct reader *r, const json_t *o, struct jump *ret)
{
    const char *result = json_string_value(json_object_get(o, "result"));
    const char *user = json_string_value(json_object_get(o, "user"));
    const char *pattern = result ? result : user;
    if (keys_check(r, o, " result user turn ", "jump") != OK ||
        turn_find(r, json_object_get(o, "turn"), &ret->turn) != OK)
        return r->err->code;
    if (pattern == NULL)
        return err_raise(r->err, ERR_FORMAT, "a jump wants 'result' or 'user'");
    ret->on = result ? JUMP_RESULT : JUMP_USER;
    if (regcomp(&ret->pattern, pattern, REG_EXTENDED) != 0)
        return err_raise(r->err, ERR_FORMAT, "'%s' is no pattern", pattern);
    return OK;
}

static enum err_code jumps_read(struct reader *r, const json_t *list, struct jumps *ret)
{
    const json_t *o;
    size_t i;
    ret->v = arena_new(r->arena, struct jump, json_array_size(list));
    json_array_foreach(list, i, o)
    {
        if (jump_read(r, o, &ret->v[ret->n]) != OK)
            return r->err->code;
        ret->n++;
    }
    return OK;
}

/* Members of the arguments that stand in files: {"content": "../kernels/a.c"}. */
static enum err_code files_read(struct reader *r, const json_t *files, json_t *args)
{
    const char *key;
    json_t *name;
    json_object_foreach((json_t *)files, key, name)
    {
        struct str text;
        const char *path =
            path_join(r->arena, r->dir, json_is_string(name) ? json_string_value(name) : "");
        if (file_read(r->arena, path, FILE_MAX, &text, r->err) != OK)
            return r->err->code;
        json_t *value = json_stringn(text.ptr, text.len);
        if (value == NULL)
            return err_raise(r->err, ERR_FORMAT, "%s is not UTF-8", path);
        json_object_set_new(args, key, value);
    }
    return OK;
}

static enum err_code call_read(struct reader *r, const json_t *o, struct turn_call *ret)
{
    const json_t *text = json_object_get(o, "args_text");
    own_json args =
        json_object_get(o, "args") ? json_deep_copy(json_object_get(o, "args")) : json_object();
    if (keys_check(r, o, " name args args_text files ", "call") != OK ||
        files_read(r, json_object_get(o, "files"), args) != OK)
        return r->err->code;
    own_mem char *z = json_dumps(args, JSON_COMPACT);
    if (!json_is_string(json_object_get(o, "name")))
        return err_raise(r->err, ERR_FORMAT, "a call wants a name");
    ret->name = str_z(r->arena, str_from(json_string_value(json_object_get(o, "name"))));
    ret->args = text ? str_copy(r->arena, str_from(json_string_value(text)))
                : z  ? str_copy(r->arena, str_from(z))
                     : S("{}");
    return OK;
}

static enum err_code calls_read(struct reader *r, const json_t *list, struct turn *t)
{
    const json_t *o;
    size_t i;
    t->calls = arena_new(r->arena, struct turn_call, json_array_size(list));
    json_array_foreach(list, i,
                       o) if (call_read(r, o, &t->calls[t->n_calls++]) != OK) return r->err->code;
    return OK;
}

static enum err_code trouble_read(struct reader *r, const json_t *o, struct trouble *ret)
{
    const char *retry = json_string_value(json_object_get(o, "retry_after"));
    const json_t *share = json_object_get(o, "share");
    int kind = -1;
    *ret = (struct trouble){ .times = 1, .share = 1 };
    if (keys_check(r, o, " kind times after share streams retry_after ", "fault") != OK ||
        choice_read(r, o, "kind", trouble_names, &kind) != OK ||
        number_read(r, o, "times", &ret->times) != OK ||
        number_read(r, o, "after", &ret->after) != OK)
        return r->err->code;
    if (kind < 0)
        return err_raise(r->err, ERR_FORMAT, "a fault wants a kind");
    if (share != NULL) {
        ret->share = json_number_value(share);
        ret->times = json_object_get(o, "times") ? ret->times : -1;
    }
    ret->kind = (enum trouble_kind)kind;
    ret->streams = json_is_true(json_object_get(o, "streams"));
    ret->retry_after = retry ? str_z(r->arena, str_from(retry)) : NULL;
    return OK;
}

static enum err_code troubles_read(struct reader *r, const json_t *list, struct turn *t)
{
    const json_t *o;
    size_t i;
    t->troubles = arena_new(r->arena, struct trouble, json_array_size(list));
    json_array_foreach(list, i, o) if (trouble_read(r, o, &t->troubles[t->n_troubles++]) !=
                                       OK) return r->err->code;
    return OK;
}

static enum err_code usage_read(struct reader *r, const json_t *o, struct turn *t)
{
    t->input = t->cached = t->output = -1;
    if (o == NULL)
        return OK;
    if (keys_check(r, o, " input cached output ", "usage") != OK ||
        number_read(r, o, "input", &t->input) != OK ||
        number_read(r, o, "cached", &t->cached) != OK)
        return r->err->code;
    return number_read(r, o, "output", &t->output);
}

static struct str text_read(struct reader *r, const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key), *line;
    struct buf b = { .arena = r->arena, .max = FILE_MAX };
    size_t i;
    if (json_is_string(v))
        return str_copy(r->arena, str_from(json_string_value(v)));
    json_array_foreach(v, i, line) buf_addf(&b, "%s\n", json_string_value(line));
    return (struct str){ b.ptr, b.len };
}

static enum err_code turn_read(struct reader *r, const json_t *o, size_t place, struct turn *t)
{
    int end = END_STOP, pieces = PIECES_TOKENS;
    if (keys_check(r, o,
                   " name thinking text calls markup end pieces delay_ms pace_ms cut_bytes usage "
                   "next then faults ",
                   "turn") != OK ||
        choice_read(r, o, "end", end_names, &end) != OK ||
        choice_read(r, o, "pieces", piece_names, &pieces) != OK ||
        number_read(r, o, "delay_ms", &t->delay_ms) != OK ||
        number_read(r, o, "pace_ms", &t->pace_ms) != OK ||
        number_read(r, o, "cut_bytes", &t->cut_bytes) != OK ||
        usage_read(r, json_object_get(o, "usage"), t) != OK ||
        calls_read(r, json_object_get(o, "calls"), t) != OK ||
        troubles_read(r, json_object_get(o, "faults"), t) != OK ||
        jumps_read(r, json_object_get(o, "next"), &t->next) != OK)
        return r->err->code;
    const char *name = json_string_value(json_object_get(o, "name"));
    t->name = name ? str_z(r->arena, str_from(name)) : arena_fmt(r->arena, "%zu", place);
    t->thinking = text_read(r, o, "thinking");
    t->text = text_read(r, o, "text");
    t->markup = json_is_true(json_object_get(o, "markup"));
    t->end = (enum end)end;
    t->pieces = (enum pieces)pieces;
    t->then = place + 1 < json_array_size(r->turns) ? place + 1 : place;
    const json_t *then = json_object_get(o, "then");
    return then == NULL ? OK : turn_find(r, then, &t->then);
}

static enum err_code script_fill(struct reader *r, const json_t *o, struct script *s)
{
    const json_t *turn, *model = json_object_get(o, "model");
    size_t i;
    if (keys_check(r, o, " about model window turns start ", "script") != OK ||
        number_read(r, o, "window", &s->window) != OK)
        return r->err->code;
    r->turns = json_object_get(o, "turns");
    s->n_turns = json_array_size(r->turns);
    if (s->n_turns == 0 || s->n_turns >= TURNS_MAX)
        return err_raise(r->err, ERR_FORMAT, "turns: wanted 1 to %d of them", TURNS_MAX - 1);
    s->turns = arena_new(r->arena, struct turn, s->n_turns);
    if (model != NULL)
        s->model = str_z(r->arena, str_from(json_string_value(model)));
    if (jumps_read(r, json_object_get(o, "start"), &s->start) != OK)
        return r->err->code;
    json_array_foreach(r->turns, i, turn) if (turn_read(r, turn, i, &s->turns[i]) != OK)
    {
        return err_within(r->err, "turn %zu", i);
    }
    return OK;
}

enum err_code script_read(struct arena *a, const char *path, struct script *ret, struct err *err)
{
    struct str text, stem = str_from(strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
    own_json j = NULL;
    if (file_read(a, path, FILE_MAX, &text, err) != OK)
        return err->code;
    struct str dir = str_from(path);
    dir.len -= stem.len;
    struct reader r = { .arena = a, .err = err, .dir = dir.len > 0 ? str_z(a, dir) : "." };
    if (str_ends(stem, S(".json")))
        stem.len -= 5;
    *ret = (struct script){ .model = str_z(a, stem), .window = WINDOW_DEFAULT };
    if (json_parse(text, FILE_MAX, &j, err) != OK || script_fill(&r, j, ret) != OK)
        return err_within(err, "%s", path);
    return OK;
}

static void jumps_fini(struct jumps *j)
{
    for (size_t i = 0; i < j->n; i++)
        regfree(&j->v[i].pattern);
}

void script_fini(struct script *s)
{
    jumps_fini(&s->start);
    for (size_t i = 0; i < s->n_turns; i++)
        jumps_fini(&s->turns[i].next);
}

/* ---- which turn ---- */

/* The first jump whose pattern stands in one of these; `otherwise` where there is none. */
static size_t jump(struct arena *a, const struct jumps *jumps, const struct said *said, size_t n,
                   size_t otherwise, struct str caught[GROUPS])
{
    regmatch_t m[GROUPS];
    for (size_t k = 0; k < jumps->n; k++) {
        const struct jump *j = &jumps->v[k];
        for (size_t i = n; i-- > 0;) {
            bool fits = said[i].who == (j->on == JUMP_RESULT ? WHO_RESULT : WHO_USER);
            const char *z = fits ? str_z(a, said[i].text) : NULL;
            if (z == NULL || regexec(&j->pattern, z, GROUPS, m, 0) != 0)
                continue;
            for (size_t g = 0; g < GROUPS; g++)
                caught[g] = m[g].rm_so < 0
                                ? (struct str){ 0 }
                                : (struct str){ z + m[g].rm_so, (size_t)(m[g].rm_eo - m[g].rm_so) };
            return j->turn;
        }
    }
    return otherwise;
}

/* The index behind the answer that stands at or behind `from`; n_said where none does. */
static size_t answer_end(const struct talk *talk, size_t from)
{
    while (from < talk->n_said && talk->said[from].who != WHO_MODEL)
        from++;
    return from < talk->n_said ? from + 1 : talk->n_said;
}

static size_t count_answers(const struct talk *talk, size_t *ret_last)
{
    size_t n = 0;
    for (size_t i = 0; i < talk->n_said; i++)
        if (talk->said[i].who == WHO_MODEL) {
            n++;
            *ret_last = i;
        }
    return n;
}

struct turn *script_turn(struct arena *a, struct script *s, const struct talk *talk,
                         const struct id_form *ids, size_t *ret_place, struct str caught[GROUPS])
{
    size_t last = 0, turn = 0, place = 0, n = count_answers(talk, &last), at = 0;
    caught[0] = caught[1] = (struct str){ 0 };
    *ret_place = n;
    /* The last answer's own word outlives a history that was shortened. */
    if (n > 0 && id_read(a, ids, talk->said[last].id, &turn, &place) && turn < s->n_turns) {
        *ret_place = place + 1;
        return &s->turns[jump(a, &s->turns[turn].next, &talk->said[last + 1],
                              talk->n_said - last - 1, s->turns[turn].then, caught)];
    }
    while (at < talk->n_said && talk->said[at].who != WHO_MODEL)
        at++;
    turn = jump(a, &s->start, talk->said, at, 0, caught);
    for (size_t i = 0; i < n; i++) {
        size_t from = answer_end(talk, at);
        at = from;
        while (at < talk->n_said && talk->said[at].who != WHO_MODEL)
            at++;
        turn = jump(a, &s->turns[turn].next, &talk->said[from], at - from, s->turns[turn].then,
                    caught);
    }
    return &s->turns[turn];
}
