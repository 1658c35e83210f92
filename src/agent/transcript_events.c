/* One function an event: what it does to the state. */
#include <stdlib.h>

#include "agent/parts.h"
#include "agent/transcript_int.h"
#include "core/json.h"

static enum err_code text_set(char **slot, struct str s, struct err *err)
{
    char *copy = strndup(s.ptr ? s.ptr : "", s.len);
    if (copy == NULL)
        return err_sys(err, "no memory for a text");
    free(*slot);
    *slot = copy;
    return OK;
}

static void json_set(json_t **slot, const json_t *to)
{
    json_t *kept = json_incref((json_t *)(uintptr_t)to);
    json_decref(*slot);
    *slot = kept;
}

static enum err_code index_check(const struct transcript *t, const json_t *e, struct err *err)
{
    int64_t index = member_int(e, "index");
    return index == (int64_t)t->n ? OK
                                  : err_raise(err, ERR_FORMAT, "message %lld where %zu comes next",
                                              (long long)index, t->n);
}

static enum err_code on_run_start(struct transcript *t, const json_t *e, struct err *err)
{
    own_mem char *tools =
        json_dumps(json_object_get(e, "tools"), JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS);
    (void)err;
    t->system = str_copy(&t->arena, member_text(e, "system"));
    t->base_bytes = t->bytes = t->system.len + (tools ? strlen(tools) : 0);
    sha256_start(&t->prefix_base);
    sha256_part(&t->prefix_base, t->system);
    sha256_part(&t->prefix_base, str_from(tools));
    t->prefix = t->prefix_base;
    t->started = true;
    return OK;
}

static enum err_code on_message(struct transcript *t, const json_t *e, struct err *err)
{
    static const struct {
        const char *kind;
        enum said_by by;
    } rows[] = { { "task", SAID_TASK },
                 { "nudge", SAID_NUDGE },
                 { "steer", SAID_STEER },
                 { "reminder", SAID_REMINDER } };
    struct said s = { .m.role = CHAT_USER, .turn = t->next_turn, .by = SAID_REMINDER };
    struct str kind = member_text(e, "kind");
    for (size_t i = 0; i < COUNT(rows); i++)
        if (str_eq(kind, str_from(rows[i].kind)))
            s.by = rows[i].by;
    if (index_check(t, e, err) != OK ||
        parts_read(&t->arena, json_object_get(e, "parts"), &s.parts, &s.m.n_parts, err) != OK)
        return err->code;
    if (s.by == SAID_NUDGE) {
        t->nudged = true;
        t->loop_nudges += str_eq(member_text(e, "about"), S("loop"));
    }
    if (s.by == SAID_STEER)
        t->n_actions = 0;
    if (s.by == SAID_REMINDER) {
        t->behind_lost &= !str_eq(member_text(e, "about"), S("resumed"));
        t->todo_turn = t->next_turn;
        t->reminder_due = false;
    }
    return said_add(t, s, err);
}

static enum err_code on_request(struct transcript *t, const json_t *e, struct err *err)
{
    (void)err;
    transcript_flight_clear(t);
    t->flight.open = true;
    t->flight.turn = member_int(e, "turn");
    t->flight.seq = member_int(e, "seq");
    t->flight.summary = str_eq(member_text(e, "purpose"), S("summary"));
    t->asked_bytes = t->bytes;
    return OK;
}

static void usage_take(struct transcript *t, const json_t *e)
{
    const json_t *u = json_object_get(e, "usage");
    struct totals *used = &t->flight.used;
    used->input = member_int(u, "input_total");
    used->cached = member_int(u, "input_cached");
    used->output = member_int(u, "output_total");
    used->cost = json_number_value(json_object_get(e, "cost"));
    if (used->input > 0 && !t->flight.summary && !json_is_true(json_object_get(u, "estimated")))
        tokens_anchor(t, used->input, t->asked_bytes);
}

static enum err_code on_response(struct transcript *t, const json_t *e, struct err *err)
{
    struct said s = { .m.role = CHAT_ASSISTANT, .by = SAID_ANSWER, .turn = t->flight.turn };
    t->flight.answered = true;
    t->flight.index = member_int(e, "index");
    t->last = answer_of(e);
    usage_take(t, e);
    if (t->last == ANSWER_FAILED) {
        const json_t *fault = json_object_get(e, "fault");
        if (text_set(&t->fault, member_text(fault, "message"), err) != OK)
            return err->code;
    }
    if (t->flight.index < 0)
        return OK;
    if (index_check(t, e, err) != OK ||
        parts_read(&t->arena, json_object_get(e, "parts"), &s.parts, &s.m.n_parts, err) != OK)
        return err->code;
    s.m.extra = str_copy(&t->arena, member_text(e, "extra"));
    return said_add(t, s, err);
}

/* ---- tools ---- */

static void action_add(struct transcript *t, const struct chat_part *call, struct str name,
                       struct str text, bool failed)
{
    struct action a = { .call = action_hash(call->name, call->args),
                        .result = action_hash(text, S("")),
                        .tree = action_hash(str_from(t->tree), S("")),
                        .failed = failed,
                        .waits = str_eq(name, S("BashOutput")) };
    if (t->n_actions == ACTIONS_MAX)
        memmove(t->action, t->action + 1, --t->n_actions * sizeof a);
    t->action[t->n_actions++] = a;
}

/* "...; now in /workspace/sub]" of Bash. */
static enum err_code cwd_take(struct transcript *t, struct str text, struct err *err)
{
    static const char mark[] = "; now in ";
    struct str rest = text, tail = { 0 };
    for (const char *at; (at = memmem(rest.ptr, rest.len, mark, strlen(mark))) != NULL;) {
        rest = str_drop(rest, (size_t)(at - rest.ptr) + strlen(mark));
        tail = rest;
    }
    struct str path = { 0 };
    return tail.len > 0 && str_cut(&tail, ']', &path) ? text_set(&t->cwd, path, err) : OK;
}

/* What a new tools session would have to be told. */
static enum err_code session_note(struct transcript *t, const struct chat_part *call,
                                  struct str name, struct str text, struct err *err)
{
    own_json args = NULL;
    struct err ignored = { 0 };
    if (json_parse(call->args, (size_t)8 << 20, &args, &ignored) != OK)
        return OK;
    if (str_eq(name, S("TodoWrite"))) {
        t->todo_turn = t->flight.turn;
        return text_set(&t->todos, call->args, err);
    }
    if (str_eq(name, S("Bash"))) {
        t->behind += json_is_true(json_object_get(args, "run_in_background"));
        return cwd_take(t, text, err);
    }
    if (!str_eq(name, S("Read")) && !str_eq(name, S("Write")) && !str_eq(name, S("Edit")) &&
        !str_eq(name, S("MultiEdit")))
        return OK;
    if (t->flight.touched == NULL)
        t->flight.touched = json_object();
    own_arena tmp = { 0 };
    struct str path = transcript_path(member_text(args, "file_path"));
    json_object_set_new(t->flight.touched, str_z(&tmp, path), json_true());
    return OK;
}

static enum err_code on_tool_end(struct transcript *t, const json_t *e, struct err *err)
{
    struct flight *f = &t->flight;
    const struct chat_part *call = transcript_call(t, f->index, f->n_results);
    bool failed = json_is_true(json_object_get(e, "failed"));
    struct str text = member_text(e, "text"), name = member_text(e, "name");
    if (call == NULL)
        return err_raise(err, ERR_FORMAT, "a result that no call wants");
    if (transcript_grow(&f->result, &f->cap_results, f->n_results, sizeof *f->result, err) != OK)
        return err->code;
    f->result[f->n_results++] = (struct chat_part){ .kind = CHAT_RESULT,
                                                    .is_error = failed,
                                                    .text = str_copy(&t->arena, text),
                                                    .id = str_copy(&t->arena, call->id),
                                                    .name = str_copy(&t->arena, call->name) };
    if (json_is_true(json_object_get(e, "skipped")))
        return OK;
    action_add(t, call, name, text, failed);
    t->submitted |= !failed && str_eq(name, S("submit"));
    return failed ? OK : session_note(t, call, name, text, err);
}

/* ---- turns ---- */

static enum err_code results_join(struct transcript *t, struct err *err)
{
    struct flight *f = &t->flight;
    struct said s = { .m.role = CHAT_USER, .by = SAID_RESULTS, .turn = f->turn };
    if (f->n_results == 0)
        return OK;
    s.m.n_parts = f->n_results;
    s.parts = arena_new(&t->arena, struct chat_part, f->n_results);
    memcpy(s.parts, f->result, f->n_results * sizeof *s.parts);
    return said_add(t, s, err);
}

static const char *hash_of(const json_t *files, const char *path)
{
    size_t i;
    const json_t *f;
    json_array_foreach(files, i, f)
    {
        const char *p = json_string_value(json_object_get(f, "path"));
        if (p != NULL && strcmp(p, path) == 0)
            return json_string_value(json_object_get(f, "hash"));
    }
    return NULL;
}

static void seen_note(struct transcript *t)
{
    const char *path;
    json_t *ignored;
    json_object_foreach(t->flight.touched, path, ignored)
    {
        const char *hash = hash_of(t->files, path);
        json_object_del(t->seen, path); /* the newest stand last */
        if (hash != NULL)
            json_object_set_new(t->seen, path, json_string(hash));
    }
}

static void streaks(struct transcript *t)
{
    enum answer a = t->last;
    t->unusable = answer_unusable(a) ? t->unusable + 1 : 0;
    t->refusals = a == ANSWER_REFUSED ? t->refusals + 1 : 0;
    t->overflows = a == ANSWER_OVERFLOW ? t->overflows + 1 : a == ANSWER_SUMMARY ? t->overflows : 0;
    t->contents = a == ANSWER_CONTENT ? t->contents + 1 : a == ANSWER_CALLS ? 0 : t->contents;
    if (loop_find(t->action, t->n_actions) == LOOP_NONE)
        t->loop_nudges = 0;
    if (a != ANSWER_REFUSED && a != ANSWER_SUMMARY)
        t->refused_reset = false;
}

static enum err_code on_turn_end(struct transcript *t, const json_t *e, struct err *err)
{
    if (results_join(t, err) != OK)
        return err->code;
    seen_note(t);
    streaks(t);
    t->totals = totals_read(json_object_get(e, "totals"));
    t->next_turn = member_int(e, "turn") + 1;
    t->nudged = false;
    transcript_flight_clear(t);
    return OK;
}

static enum err_code on_fs(struct transcript *t, const json_t *e, struct err *err)
{
    struct str tree = member_text(e, "tree");
    if (tree.len >= sizeof t->tree)
        return err_raise(err, ERR_FORMAT, "a tree that is no hash");
    memcpy(t->tree, tree.ptr, tree.len);
    t->tree[tree.len] = '\0';
    json_set(&t->files, json_object_get(e, "files"));
    return OK;
}

/* ---- the examiner ---- */

static double real_at(const json_t *j, const char *a, const char *b, const char *c)
{
    const json_t *at = json_object_get(json_object_get(j, a), b);
    return json_number_value(c ? json_object_get(at, c) : at);
}

static enum err_code on_eval(struct transcript *t, const json_t *e, struct err *err)
{
    const json_t *v = json_object_get(e, "verdict");
    if (transcript_grow(&t->graded, &t->cap_graded, t->n_graded, sizeof *t->graded, err) != OK)
        return err->code;
    char *step = NULL, *status = NULL, *candidate = NULL, *idea = NULL;
    if (text_set(&step, member_text(e, "step"), err) != OK ||
        text_set(&status, member_text(v, "status"), err) != OK ||
        text_set(&candidate, member_text(e, "candidate"), err) != OK ||
        text_set(&idea, member_text(e, "idea"), err) != OK) {
        free(step), free(status), free(candidate);
        return err->code;
    }
    t->graded[t->n_graded++] =
        (struct graded){ .turn = member_int(e, "turn"),
                         .step = step,
                         .status = status,
                         .candidate = candidate,
                         .idea = idea,
                         .us = real_at(v, "time_us", "candidate", "median"),
                         .vs_eager = real_at(v, "speedup", "vs_eager", "median"),
                         .vs_compile = real_at(v, "speedup", "vs_compile", "median"),
                         .vs_best = real_at(v, "speedup", "vs_best", "median"),
                         .milestone = member_int(json_object_get(v, "reward"), "milestone"),
                         .best = json_is_true(json_object_get(e, "best")) };
    if (json_is_true(json_object_get(e, "best")))
        json_set(&t->best, e);
    return OK;
}

/* ---- what the model sees becomes less ---- */

static struct said *said_at(struct transcript *t, int64_t index)
{
    return index >= 0 && (size_t)index < t->n ? &t->said[index] : NULL;
}

static enum err_code item_apply(struct transcript *t, const json_t *item, struct err *err)
{
    struct said *s = said_at(t, member_int(item, "index"));
    int64_t part = member_int(item, "part");
    if (s == NULL || part < 0 || (size_t)part >= s->m.n_parts)
        return err_raise(err, ERR_FORMAT, "a part that is not there is to be shortened");
    struct chat_part *p = &s->parts[part];
    struct str *field = str_eq(member_text(item, "field"), S("args")) ? &p->args : &p->text;
    size_t before = part_bytes(p);
    t->waste += field->len;
    *field = str_copy(&t->arena, member_text(item, "text"));
    s->bytes = s->bytes - before + part_bytes(p);
    return OK;
}

/* *ret_first: the first that went, if it is before that. */
static void drop_apply(struct transcript *t, const json_t *dropped, size_t *ret_first)
{
    size_t i;
    const json_t *index;
    json_array_foreach(dropped, i, index)
    {
        struct said *s = said_at(t, json_integer_value(index));
        if (s == NULL || s->gone || s->by == SAID_TASK)
            continue;
        s->gone = true;
        t->waste += s->bytes;
        if ((size_t)(s - t->said) < *ret_first)
            *ret_first = (size_t)(s - t->said);
    }
}

static enum err_code on_context(struct transcript *t, const json_t *e, struct err *err)
{
    size_t i;
    const json_t *item;
    struct str summary = member_text(e, "summary");
    json_array_foreach(json_object_get(e, "items"), i, item)
    {
        if (item_apply(t, item, err) != OK)
            return err->code;
    }
    size_t place = t->summary.len > 0 ? t->summary_at : t->n;
    drop_apply(t, json_object_get(e, "dropped"), &place);
    if (summary.len > 0) {
        t->summary_at = place;
        t->waste += t->summary.len;
        t->summary = str_copy(&t->arena, summary);
    }
    t->cleanup[1] = t->cleanup[0];
    t->cleanup[0].turn = member_int(e, "turn");
    t->cleanup[0].before = member_int(e, "before");
    t->cleanup[0].after = member_int(e, "after");
    t->cleanup[0].reset = str_eq(member_text(e, "kind"), S("reset"));
    t->refused_reset |= t->refusals > 0;
    t->reminder_due = true;
    return view_rebuild(t, err);
}

/* ---- limits and ends ---- */

static enum err_code on_limit(struct transcript *t, const json_t *e, struct err *err)
{
    (void)err;
    t->window_ended |= str_eq(member_text(e, "what"), S("window"));
    for (enum budget_of k = 0; k < BUDGET_KINDS; k++)
        if (str_eq(member_text(e, "what"), str_from(budget_name(k)))) {
            t->warned[k] = true;
            t->ended[k] |= json_is_true(json_object_get(e, "ended"));
        }
    return OK;
}

static enum err_code on_resumed(struct transcript *t, const json_t *e, struct err *err)
{
    (void)e, (void)err;
    transcript_flight_clear(t);
    free(t->status);
    free(t->reason);
    free(t->fault);
    t->status = t->reason = t->fault = NULL;
    t->behind_lost |= t->behind > 0;
    t->behind = 0;
    t->window_ended = false;
    memset(t->ended, 0, sizeof t->ended); /* the budget may be larger */
    if (t->last == ANSWER_FAILED)
        t->last = ANSWER_NONE;
    return OK;
}

static enum err_code on_run_end(struct transcript *t, const json_t *e, struct err *err)
{
    if (text_set(&t->status, member_text(e, "status"), err) != OK)
        return err->code;
    return text_set(&t->reason, member_text(e, "reason"), err);
}

enum err_code transcript_apply(struct transcript *t, const json_t *event, struct err *err)
{
    static const struct {
        const char *name;
        enum err_code (*apply)(struct transcript *t, const json_t *e, struct err *err);
    } rows[] = {
        { "run_start", on_run_start },
        { "message", on_message },
        { "request", on_request },
        { "response", on_response },
        { "tool_end", on_tool_end },
        { "turn_end", on_turn_end },
        { "fs", on_fs },
        { "eval", on_eval },
        { "context", on_context },
        { "limit", on_limit },
        { "resumed", on_resumed },
        { "run_end", on_run_end },
    };
    struct str name = member_text(event, "event");
    for (size_t i = 0; i < COUNT(rows); i++)
        if (str_eq(name, str_from(rows[i].name))) {
            if (rows[i].apply(t, event, err) == OK)
                return OK;
            return err_within(err, "the event %lld ('%s')", (long long)member_int(event, "seq"),
                              rows[i].name);
        }
    return OK; /* events that change nothing: tool_start, error, and what later versions add */
}
