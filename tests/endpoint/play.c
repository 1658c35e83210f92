#include "endpoint/play.h"

#include <stdlib.h>

#define BODY_MAX ((size_t)64 << 20)
#define TOKEN_BYTES 3

static void refused(struct stage *s, struct answer *ans, const struct refusal *r)
{
    s->n_refused++;
    answer_json(ans, r->status, NULL, disguise_error(s->disguise, r));
}

static struct script *script_find(struct stage *s, struct str model)
{
    for (size_t i = 0; i < s->n_scripts; i++)
        if (str_eq(str_from(s->scripts[i].model), model))
            return &s->scripts[i];
    return NULL;
}

/* Uniform in [0, 1): splitmix64. */
static double chance(struct stage *s)
{
    uint64_t z = s->random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static const struct trouble *trouble_of(struct stage *s, struct turn *t, bool streamed)
{
    for (size_t i = 0; i < t->n_troubles; i++) {
        struct trouble *one = &t->troubles[i];
        if (one->times >= 0 && one->n_struck >= one->times)
            continue;
        if (one->streams && !streamed)
            continue;
        if (one->share < 1 && chance(s) >= one->share)
            continue;
        one->n_struck++;
        s->n_struck++;
        return one;
    }
    return NULL;
}

/* ---- what is told ---- */

static struct str filled(struct arena *a, struct str text, struct str caught)
{
    const char *at = text.len > 0 ? memmem(text.ptr, text.len, "$1", 2) : NULL;
    if (at == NULL)
        return text;
    size_t before = (size_t)(at - text.ptr);
    return str_from(arena_fmt(a, "%.*s%.*s%.*s", (int)before, text.ptr, STR_FMT(caught),
                              STR_FMT(str_drop(text, before + 2))));
}

static int64_t shorten(struct str *s, int64_t room)
{
    int64_t bytes = room * TOKEN_BYTES;
    if ((int64_t)s->len > bytes)
        s->len = (size_t)(bytes > 0 ? bytes : 0);
    return room - tokens_count(*s);
}

/* What max_tokens leaves of it. */
static void limit(struct telling *t)
{
    int64_t room = t->talk->max_tokens > 0 ? t->talk->max_tokens : INT64_MAX / 8;
    int64_t wanted = tokens_count(t->thinking) + tokens_count(t->text);
    for (size_t i = 0; i < t->n_calls; i++)
        wanted += tokens_count(tell_args(t, i));
    if (wanted <= room)
        return;
    room = shorten(&t->thinking, room);
    room = shorten(&t->text, room);
    size_t n = t->n_calls;
    t->n_calls = 0;
    for (size_t i = 0; i < n && room > 0; i++) {
        t->n_calls = i + 1;
        t->last_args = t->turn->calls[i].args;
        room = shorten(&t->last_args, room);
    }
    t->end = END_LENGTH;
}

static struct str rendered(struct arena *a, const struct telling *t)
{
    struct buf b = { .arena = a, .max = BODY_MAX };
    if (t->thinking.len > 0)
        buf_addf(&b, "<think>\n%.*s\n</think>\n", STR_FMT(t->thinking));
    buf_add(&b, t->text);
    for (size_t i = 0; i < t->n_calls && !t->turn->markup; i++)
        call_render(&b, t->turn->calls[i].name, tell_args(t, i));
    if (t->end != END_LENGTH)
        buf_addz(&b, "<|im_end|>");
    return (struct str){ b.ptr, b.len };
}

static void markup_add(struct arena *a, struct telling *t)
{
    struct buf b = { .arena = a, .max = BODY_MAX };
    buf_add(&b, t->text);
    for (size_t i = 0; i < t->n_calls; i++)
        call_render(&b, t->turn->calls[i].name, t->turn->calls[i].args);
    t->text = (struct str){ b.ptr, b.len };
}

static void tell_fill(struct arena *a, struct telling *t, struct str caught)
{
    const struct turn *turn = t->turn;
    t->text = filled(a, turn->text, caught);
    t->thinking = turn->thinking;
    t->n_calls = turn->n_calls;
    if (t->disguise->one_call && t->n_calls > 1 &&
        !json_is_true(json_object_get(t->talk->body, "parallel_tool_calls")))
        t->n_calls = 1;
    if (!t->talk->parallel && t->n_calls > 1)
        t->n_calls = 1;
    if (t->n_calls > 0)
        t->last_args = turn->calls[t->n_calls - 1].args;
    t->end = turn->end;
    if (turn->markup)
        markup_add(a, t);
    limit(t);
    struct str all = rendered(a, t);
    if (t->disguise->tokens)
        tokens_add(a, &t->ids, &t->n_ids, all);
    t->input = turn->input >= 0 ? turn->input : t->talk->n_prompt;
    t->cached = turn->cached;
    t->output = turn->output >= 0 ? turn->output : tokens_count(all);
    t->reasoning = tokens_count(t->thinking);
}

static enum api api_of(const struct stage *s, struct str path, bool *ret_known)
{
    static const struct {
        const char *path;
        enum api api;
    } rows[] = { { "/v1/chat/completions", API_OPENAI },
                 { "/v1/messages", API_ANTHROPIC },
                 { "/v1/completions", API_TOKENS } };
    for (size_t i = 0; i < COUNT(rows); i++)
        if (str_eq(path, str_from(rows[i].path))) {
            bool here = rows[i].api == API_TOKENS      ? s->disguise->tokens
                        : rows[i].api == API_ANTHROPIC ? s->disguise->anthropic
                                                       : !s->disguise->anthropic;
            *ret_known = here;
            return rows[i].api;
        }
    *ret_known = false;
    return API_OPENAI;
}

static void converse(struct stage *s, enum api api, const json_t *body, struct answer *ans)
{
    struct talk talk;
    struct err err = { 0 };
    struct str caught[GROUPS];
    struct refusal r;
    if (talk_read(ans->arena, api, body, &talk, &err) != OK) {
        r = (struct refusal){ .status = 400, .type = "invalid_request_error", .message = err.text };
        refused(s, ans, &r);
        return;
    }
    struct script *script = script_find(s, talk.model);
    if (script == NULL) {
        r = (struct refusal){ .status = 404,
                              .type = s->disguise->anthropic ? "not_found_error"
                                                             : "invalid_request_error",
                              .message = arena_fmt(ans->arena,
                                                   "The model `%.*s` does not exist or you do not "
                                                   "have access to it.",
                                                   STR_FMT(talk.model)),
                              .code = "model_not_found" };
        refused(s, ans, &r);
        return;
    }
    if (disguise_refuses(ans->arena, s->disguise, script, &talk, &r)) {
        refused(s, ans, &r);
        return;
    }
    if (s->disguise->cuts_prompt)
        talk_cut(&talk, script->window);
    if (s->disguise->tokens && api == API_OPENAI && talk.token_ids) {
        tokens_add(ans->arena, &talk.ids, &talk.n_ids, talk_render(ans->arena, &talk));
        talk.n_prompt = (int64_t)talk.n_ids;
    }
    struct telling tell = { .disguise = s->disguise, .script = script, .talk = &talk };
    struct turn *turn =
        script_turn(ans->arena, script, &talk, &s->disguise->ids, &tell.place, caught);
    tell.turn = turn;
    turn->n_played++;
    tell_fill(ans->arena, &tell, caught[1]);
    answer_turn(ans, &tell, trouble_of(s, turn, talk.stream));
}

/* ---- the rest ---- */

static json_t *counts(const struct stage *s)
{
    json_t *turns = json_object();
    for (size_t i = 0; i < s->n_scripts; i++)
        for (size_t k = 0; k < s->scripts[i].n_turns; k++) {
            const struct turn *t = &s->scripts[i].turns[k];
            if (t->n_played > 0)
                json_object_set_new(turns, t->name, json_integer(t->n_played));
        }
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "requests", (json_int_t)s->n_requests,
                     "refused", (json_int_t)s->n_refused, "struck", (json_int_t)s->n_struck,
                     "connections", (json_int_t)s->n_connections, "connections_most",
                     (json_int_t)s->connections_most, "accepted", (json_int_t)s->n_accepted,
                     "turns", turns);
}

static bool key_is_right(const struct stage *s, const struct http_request *q)
{
    struct str key = s->disguise->anthropic ? q->api_key : q->authorization;
    if (!s->disguise->anthropic && str_starts(key, S("Bearer ")))
        key = str_drop(key, 7);
    return s->key == NULL || str_eq(key, str_from(s->key));
}

static void look(struct stage *s, struct str path, struct answer *ans)
{
    bool llamacpp = s->disguise->timings;
    if (str_eq(path, S("/v1/models"))) {
        answer_json(ans, 200, NULL, disguise_models(s->disguise, s->scripts, s->n_scripts));
    } else if (llamacpp && str_eq(path, S("/props"))) {
        answer_json(ans, 200, NULL, disguise_props(&s->scripts[0]));
    } else {
        struct refusal r = { .status = 404, .type = "not_found_error", .message = "Not Found" };
        refused(s, ans, &r);
    }
}

void play(struct stage *s, const struct http_request *q, struct answer *ans)
{
    struct err err = { 0 };
    own_json body = NULL;
    struct str path = q->path, query = q->path;
    bool here;
    str_cut(&query, '?', &path);
    ans->events_max = -1;
    if (str_eq(path, S("/scripted/counts"))) {
        answer_json(ans, 200, NULL, counts(s));
        return;
    }
    if (str_eq(path, S("/scripted/last"))) {
        answer_text(ans, 200, "application/json", str_from(s->last ? s->last : "null"));
        return;
    }
    s->n_requests++;
    if (!key_is_right(s, q)) {
        struct talk none = { 0 };
        struct refusal r =
            disguise_trouble(ans->arena, s->disguise, &s->scripts[0], &none, TROUBLE_AUTH);
        refused(s, ans, &r);
        return;
    }
    if (str_eq(q->method, S("GET"))) {
        look(s, path, ans);
        return;
    }
    enum api api = api_of(s, path, &here);
    free(s->last);
    s->last = strndup(q->body.ptr ? q->body.ptr : "", q->body.len);
    struct refusal r = { .status = 404, .type = "not_found_error", .message = "Not Found" };
    if (here && json_parse(q->body, BODY_MAX, &body, &err) == OK && json_is_object(body)) {
        converse(s, api, body, ans);
        return;
    }
    if (here)
        r = (struct refusal){ .status = 400,
                              .type = "invalid_request_error",
                              .message = "We could not parse the JSON body of your request." };
    refused(s, ans, &r);
}
