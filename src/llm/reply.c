#include "llm/reply.h"

#include "core/own.h"

#include "llm/repair.h"
#include "llm/wire.h"

/* A refusal is short; a long answer that begins with an excuse is an answer. */
#define REFUSAL_MAX 1000

const char *reply_end_name(enum reply_end end)
{
    static const char *const names[] = {
#define X(id, name) [id] = name,
        REPLY_ENDS(X)
#undef X
    };
    return names[end];
}

const char *refused_name(enum refused_by by)
{
    static const char *const names[] = {
#define X(id, name) [id] = name,
        REFUSALS(X)
#undef X
    };
    return names[by];
}

/* The text without typographic apostrophes, blanks at its start and emphasis. */
static struct str plain_start(struct arena *a, struct str text)
{
    struct buf b = { .arena = a, .max = 128 };
    text = str_trim(text);
    while (text.len > 0 && (text.ptr[0] == '*' || text.ptr[0] == '_'))
        text = str_drop(text, 1);
    while (text.len > 0 && !b.full) {
        bool apostrophe = str_starts(text, S("\xe2\x80\x99"));
        buf_add(&b, apostrophe ? S("'") : (struct str){ text.ptr, 1 });
        text = str_drop(text, apostrophe ? 3 : 1);
    }
    return (struct str){ b.ptr, b.len };
}

bool reply_refuses(struct str text)
{
    static const char *const excuses[] = { "",
                                           "sorry, but ",
                                           "sorry, ",
                                           "i'm sorry, but ",
                                           "i'm sorry, ",
                                           "i am sorry, but ",
                                           "i apologize, but ",
                                           "unfortunately, " };
    static const char *const refusals[] = {
        "i can't help with",     "i cannot help with",    "i can't assist",
        "i cannot assist",       "i can't comply",        "i cannot comply",
        "i'm unable to help",    "i am unable to help",   "i'm unable to assist",
        "i am unable to assist", "i'm not able to help",  "i'm not able to assist",
        "i won't help with",     "i will not help with",  "i can't provide",
        "i cannot provide",      "i must decline",        "i have to decline",
        "i can't do that",       "i cannot do that",      "i can't fulfill",
        "i cannot fulfill",      "i can't continue with", "i cannot continue with"
    };
    own_arena tmp = { 0 };
    struct str start = plain_start(&tmp, text);
    if (text.len > REFUSAL_MAX || wire_holds(text, "```"))
        return false;
    for (size_t e = 0; e < COUNT(excuses); e++) {
        size_t n = strlen(excuses[e]);
        if (start.len < n || !wire_same((struct str){ start.ptr, n }, excuses[e]))
            continue;
        struct str rest = str_drop(start, n);
        for (size_t i = 0; i < COUNT(refusals); i++)
            if (rest.len >= strlen(refusals[i]) &&
                wire_same((struct str){ rest.ptr, strlen(refusals[i]) }, refusals[i]))
                return true;
    }
    return false;
}

/* ---- as JSON ---- */

static json_t *text_json(struct str s)
{
    own_arena tmp = { 0 };
    struct str clean = wire_clean(&tmp, s);
    return json_stringn(clean.ptr ? clean.ptr : "", clean.len);
}

static void set_text(json_t *obj, const char *key, struct str s)
{
    if (s.len > 0)
        json_object_set_new(obj, key, text_json(s));
}

static json_t *notes_json(unsigned notes)
{
    static const struct {
        unsigned bit;
        const char *name;
    } rows[] = {
#define X(id, text, shift) { id, text },
        REPLY_NOTES(X)
#undef X
    };
    json_t *list = json_array();
    for (size_t i = 0; i < COUNT(rows); i++)
        if (notes & rows[i].bit)
            json_array_append_new(list, json_string(rows[i].name));
    return list;
}

static json_t *call_json(const struct reply_call *c)
{
    json_t *j = json_object(), *repairs = json_array();
    json_object_set_new(j, "id", text_json(c->id));
    json_object_set_new(j, "name", text_json(c->name));
    json_object_set_new(j, "args", text_json(c->args));
    set_text(j, "why", c->why);
    set_text(j, "seal", c->seal);
    for (unsigned bit = 1; repair_name(bit) != NULL; bit <<= 1)
        if (c->repairs & bit)
            json_array_append_new(repairs, json_string(repair_name(bit)));
    if (json_array_size(repairs) > 0)
        json_object_set(j, "repairs", repairs);
    json_decref(repairs);
    return j;
}

static json_t *usage_json(const struct reply_usage *u)
{
    return json_pack("{s:b, s:I, s:I, s:I, s:I, s:I}", "estimated", u->estimated, "input",
                     (json_int_t)u->input_total, "cached", (json_int_t)u->input_cached,
                     "cache_write", (json_int_t)u->input_cache_write, "output",
                     (json_int_t)u->output_total, "reasoning", (json_int_t)u->reasoning);
}

static json_t *fault_json(const struct fault *f)
{
    json_t *j = json_pack("{s:s, s:i}", "kind", fault_name(f->kind), "status", f->status);
    set_text(j, "message", f->message);
    set_text(j, "param", f->param);
    if (f->has_wait)
        json_object_set_new(j, "wait_ms", json_integer(f->wait_ms));
    if (f->n_window > 0)
        json_object_set_new(j, "window", json_integer(f->n_window));
    if (f->n_prompt > 0)
        json_object_set_new(j, "prompt", json_integer(f->n_prompt));
    return j;
}

static void set_tokens(json_t *j, const struct reply_tokens *t)
{
    json_t *prompt = json_array(), *output = json_array(), *logprob = json_array();
    for (size_t i = 0; i < t->n_prompt; i++)
        json_array_append_new(prompt, json_integer(t->prompt[i]));
    for (size_t i = 0; i < t->n_output; i++)
        json_array_append_new(output, json_integer(t->output[i]));
    for (size_t i = 0; i < t->n_logprob; i++)
        json_array_append_new(logprob, json_real(t->logprob[i]));
    if (t->n_prompt + t->n_output + t->n_logprob > 0)
        json_object_set_new(
            j, "tokens",
            json_pack("{s:O, s:O, s:O}", "prompt", prompt, "output", output, "logprob", logprob));
    json_decref(prompt);
    json_decref(output);
    json_decref(logprob);
}

static json_t *parts_json(const struct chat_message *m)
{
    static const char *const kinds[] = { [CHAT_TEXT] = "text",
                                         [CHAT_THINKING] = "thinking",
                                         [CHAT_SEALED] = "sealed",
                                         [CHAT_CALL] = "call",
                                         [CHAT_RESULT] = "result" };
    json_t *list = json_array();
    for (size_t i = 0; i < m->n_parts; i++) {
        const struct chat_part *p = &m->parts[i];
        json_t *j = json_pack("{s:s}", "kind", kinds[p->kind]);
        set_text(j, "text", p->text);
        set_text(j, "id", p->id);
        set_text(j, "seal", p->seal);
        json_array_append_new(list, j);
    }
    return list;
}

json_t *reply_json(const struct reply *r)
{
    json_t *j = json_object(), *calls = json_array();
    json_object_set_new(j, "end", json_string(reply_end_name(r->end)));
    if (r->end == REPLY_REFUSED)
        json_object_set_new(j, "refused_by", json_string(refused_name(r->refused_by)));
    set_text(j, "text", r->text);
    set_text(j, "reasoning", r->reasoning);
    set_text(j, "refusal", r->refusal);
    set_text(j, "model", r->model);
    set_text(j, "stop_text", r->stop_text);
    set_text(j, "extra", r->message.extra);
    for (size_t i = 0; i < r->n_calls; i++)
        json_array_append_new(calls, call_json(&r->calls[i]));
    if (r->n_calls > 0)
        json_object_set(j, "calls", calls);
    json_decref(calls);
    json_object_set_new(j, "parts", parts_json(&r->message));
    json_object_set_new(j, "usage", usage_json(&r->usage));
    json_object_set_new(j, "notes", notes_json(r->notes));
    if (r->fault.kind != FAULT_NONE)
        json_object_set_new(j, "fault", fault_json(&r->fault));
    set_tokens(j, &r->tokens);
    return j;
}
