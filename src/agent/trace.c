#include "agent/trace.h"

#include <time.h>

#include "core/json.h"
#include "sys/file.h"
#include "sys/runlog.h"

#define LOG_MAX ((size_t)1 << 30)

/* ---- members ---- */

bool trace_is(const json_t *event, const char *name)
{
    const char *is = json_string_value(json_object_get(event, "event"));
    return is != NULL && strcmp(is, name) == 0;
}

struct str trace_text(const json_t *obj, const char *key)
{
    const json_t *j = json_object_get(obj, key);
    return json_is_string(j) ? (struct str){ json_string_value(j), json_string_length(j) } : S("");
}

int64_t trace_int(const json_t *obj, const char *key, int64_t absent)
{
    const json_t *j = json_object_get(obj, key);
    json_int_t n = json_integer_value(j);
    return json_is_integer(j) && n >= -TRACE_INT_MAX && n <= TRACE_INT_MAX ? (int64_t)n : absent;
}

bool trace_real(const json_t *obj, const char *key, double *ret)
{
    const json_t *j = json_object_get(obj, key);
    if (!json_is_number(j))
        return false;
    *ret = json_number_value(j);
    return true;
}

const char *trace_when(struct arena *a, const json_t *event)
{
    int64_t at = trace_int(event, "at", 0);
    time_t seconds = (time_t)(at / 1000000);
    struct tm tm;
    if (at < 0 || gmtime_r(&seconds, &tm) == NULL)
        return "";
    return arena_fmt(a, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", tm.tm_year + 1900, tm.tm_mon + 1,
                     tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (int)(at / 1000 % 1000));
}

/* ---- which events count ---- */

static int64_t seq_of(const json_t *event, size_t line)
{
    return trace_int(event, "seq", (int64_t)line);
}

static void take_counting(struct arena *a, struct trace *t)
{
    size_t n = json_array_size(t->all);
    bool *dropped = arena_new(a, bool, n);
    for (size_t i = 0; i < n; i++) {
        const json_t *e = json_array_get(t->all, i);
        if (!trace_is(e, "resumed"))
            continue;
        int64_t from = trace_int(e, "dropped_from", INT64_MAX);
        /* seq counts up, so that those to drop are the last before this one. */
        for (size_t k = i; k > 0 && seq_of(json_array_get(t->all, k - 1), k - 1) >= from; k--)
            dropped[k - 1] = true;
    }
    t->event = arena_new(a, const json_t *, n);
    for (size_t i = 0; i < n; i++) {
        if (!dropped[i])
            t->event[t->n_events++] = json_array_get(t->all, i);
        t->n_dropped += dropped[i];
    }
}

/* ---- turns ---- */

static void turn_take(struct trace_turn *turn, const json_t *e)
{
    if (trace_is(e, "request"))
        turn->request = e;
    else if (trace_is(e, "response"))
        turn->response = e;
    else if (trace_is(e, "turn_end"))
        turn->end = e;
    else if (trace_is(e, "fs"))
        turn->files_now = e;
}

static void take_turns(struct arena *a, struct trace *t)
{
    t->turn = arena_new(a, struct trace_turn, t->n_events + 1);
    struct trace_turn *now = NULL;
    for (size_t i = 0; i < t->n_events; i++) {
        const json_t *e = t->event[i];
        int64_t number = trace_int(e, "turn", -1);
        if (trace_is(e, "run_start")) {
            t->start = t->start ? t->start : e;
            continue;
        }
        if (trace_is(e, "run_end")) {
            t->finished = e;
            continue;
        }
        bool other = now != NULL && now->numbered && number >= 0 && number != now->turn;
        bool closed = now != NULL && now->end != NULL && !(number >= 0 && number == now->turn);
        if (now == NULL || closed || other) {
            now = &t->turn[t->n_turns++];
            *now = (struct trace_turn){ .first = i };
        }
        if (number >= 0) {
            now->numbered = true;
            now->turn = number;
        }
        now->n = i - now->first + 1;
        turn_take(now, e);
        if (trace_is(e, "eval") && json_is_true(json_object_get(e, "best")))
            t->best_eval = e;
    }
}

/* ---- messages ---- */

static bool kind_find(struct str name, enum chat_kind *ret)
{
    static const char *const kinds[] = { [CHAT_TEXT] = "text",
                                         [CHAT_THINKING] = "thinking",
                                         [CHAT_SEALED] = "sealed",
                                         [CHAT_CALL] = "call",
                                         [CHAT_RESULT] = "result" };
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (str_eq(name, str_from(kinds[i]))) {
            *ret = (enum chat_kind)i;
            return true;
        }
    return false;
}

/* A part of a kind that is not known stays as an empty text: others count by its place. */
static struct chat_part part_of(const json_t *j)
{
    struct chat_part p = { .kind = CHAT_TEXT };
    if (!kind_find(trace_text(j, "kind"), &p.kind))
        return p;
    p.is_error = json_is_true(json_object_get(j, "is_error"));
    p.text = trace_text(j, "text");
    p.id = trace_text(j, "id");
    p.name = trace_text(j, "name");
    p.args = trace_text(j, "args");
    p.seal = trace_text(j, "seal");
    return p;
}

/* `extra` is JSON text, or the object itself. */
static struct str extra_of(struct arena *a, const json_t *event)
{
    const json_t *j = json_object_get(event, "extra");
    if (!json_is_object(j))
        return trace_text(event, "extra");
    own_mem char *text = json_dumps(j, JSON_COMPACT);
    return str_copy(a, str_from(text));
}

static struct trace_message *message_add(struct arena *a, struct trace *t, const json_t *e,
                                         enum chat_role role)
{
    struct trace_message *m = &t->message[t->n_messages++];
    const json_t *parts = json_object_get(e, "parts");
    struct chat_part *p = arena_new(a, struct chat_part, json_array_size(parts));
    for (size_t i = 0; i < json_array_size(parts); i++)
        p[i] = part_of(json_array_get(parts, i));
    m->role = m->chat.role = role;
    m->index = trace_int(e, "index", -1);
    m->chat.parts = p;
    m->chat.n_parts = json_array_size(parts);
    m->chat.extra = extra_of(a, e);
    return m;
}

static bool joins(const json_t *e)
{
    return trace_is(e, "response") && trace_int(e, "index", -1) >= 0;
}

/* The results of an answer's calls, in the order of the calls; what belongs to none comes last. */
static void results_add(struct arena *a, struct trace *t, const struct trace_turn *turn,
                        const struct trace_message *answer)
{
    struct trace_message *m = &t->message[t->n_messages];
    size_t n = 0, from = answer->at + 1, to = from;
    while (to < turn->first + turn->n && !joins(t->event[to]))
        to++;
    struct chat_part *p = arena_new(a, struct chat_part, to - from);
    bool *used = arena_new(a, bool, to - from);
    for (size_t c = 0; c <= answer->chat.n_parts; c++) {
        bool rest = c == answer->chat.n_parts;
        if (!rest && answer->chat.parts[c].kind != CHAT_CALL)
            continue;
        for (size_t i = 0; i < to - from; i++) {
            const json_t *e = t->event[from + i];
            if (used[i] || !trace_is(e, "tool_end") ||
                (!rest && !str_eq(trace_text(e, "id"), answer->chat.parts[c].id)))
                continue;
            used[i] = true;
            p[n++] = (struct chat_part){ .kind = CHAT_RESULT,
                                         .id = trace_text(e, "id"),
                                         .name = trace_text(e, "name"),
                                         .text = trace_text(e, "text"),
                                         .is_error = json_is_true(json_object_get(e, "failed")) };
            m->at = from + i > m->at ? from + i : m->at;
            if (!rest)
                break;
        }
    }
    if (n == 0)
        return;
    t->n_messages++;
    m->index = answer->index + 1;
    m->kind = "results";
    m->role = m->chat.role = CHAT_USER;
    m->chat.parts = p;
    m->chat.n_parts = n;
}

static void take_messages(struct arena *a, struct trace *t)
{
    t->message = arena_new(a, struct trace_message, t->n_events + t->n_turns + 1);
    for (size_t k = 0; k < t->n_turns; k++) {
        const struct trace_turn *turn = &t->turn[k];
        const struct trace_message *answer = NULL;
        for (size_t i = turn->first; i < turn->first + turn->n; i++) {
            const json_t *e = t->event[i];
            bool says = trace_is(e, "message");
            if (!says && !joins(e))
                continue;
            /* Steering that joins after the calls is numbered behind their results. */
            if (answer != NULL) {
                results_add(a, t, turn, answer);
                answer = NULL;
            }
            struct trace_message *m = message_add(a, t, e, says ? CHAT_USER : CHAT_ASSISTANT);
            struct str kind = trace_text(e, "kind");
            m->at = i;
            m->kind = says ? str_z(a, kind) : "answer";
            if (!says)
                answer = m;
        }
        if (answer != NULL)
            results_add(a, t, turn, answer);
    }
}

/* ---- reading ---- */

enum err_code trace_read(struct arena *a, json_t *events, struct trace *ret, struct err *err)
{
    struct trace t = { .all = events };
    take_counting(a, &t);
    take_turns(a, &t);
    take_messages(a, &t);
    struct str schema = trace_text(t.start, "schema");
    if (t.n_events > 0 && t.start == NULL) {
        err_raise(err, ERR_FORMAT, "there is no run_start");
        return err_hint(err, "an episode's log begins with one (docs/agent.md)");
    }
    if (t.start != NULL && !str_eq(schema, S(TRACE_SCHEMA)))
        return err_raise(err, ERR_FORMAT, "schema '%.*s', wanted '" TRACE_SCHEMA "'",
                         STR_FMT(schema));
    json_incref(events);
    *ret = t;
    return OK;
}

enum err_code trace_parse(struct arena *a, struct str text, struct trace *ret, struct err *err)
{
    own_json events = NULL;
    size_t whole = 0;
    if (runlog_parse(text, &events, &whole, err) != OK)
        return err_hint(err, "'head -n LINES' with one less than that line cuts a log before it");
    if (trace_read(a, events, ret, err) != OK)
        return err->code;
    ret->torn = whole < text.len;
    return OK;
}

enum err_code trace_open(struct arena *a, const char *path, struct trace *ret, struct err *err)
{
    own_arena tmp = { 0 };
    struct str text;
    const char *inside = path_join(a, path, TRACE_LOG);
    const char *log = path_exists(inside) ? inside : path;
    if (file_read(&tmp, log, LOG_MAX, &text, err) != OK)
        return err->code;
    if (trace_parse(a, text, ret, err) != OK)
        return err_within(err, "'%s'", log);
    const char *slash = strrchr(log, '/');
    ret->folder = slash ? arena_fmt(a, "%.*s", (int)(slash - log), log) : ".";
    if (slash == log)
        ret->folder = "/";
    return OK;
}

void trace_fini(struct trace *t)
{
    json_decref(t->all);
    t->all = NULL;
}

const struct chat_part *trace_call(const struct trace *t, const json_t *tool_end)
{
    struct str id = trace_text(tool_end, "id");
    for (size_t i = t->n_messages; i > 0; i--) {
        const struct trace_message *m = &t->message[i - 1];
        if (m->role != CHAT_ASSISTANT || t->event[m->at] == NULL ||
            trace_int(t->event[m->at], "turn", -1) != trace_int(tool_end, "turn", -1))
            continue;
        for (size_t k = 0; k < m->chat.n_parts; k++)
            if (m->chat.parts[k].kind == CHAT_CALL && str_eq(m->chat.parts[k].id, id))
                return &m->chat.parts[k];
    }
    return NULL;
}
