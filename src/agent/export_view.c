/* For a terminal: a line a turn, or one turn whole. Nothing of others reaches it unchanged. */
#include <math.h>

#include "agent/export.h"

#define LINE_BYTES 400 /* of a text of others in a line */

struct view {
    const struct trace *t;
    const struct export_terminal *term;
    FILE *out;
    struct arena *a;
};

static const char *paint(const struct view *v, const char *code)
{
    return v->term->colour ? code : "";
}

#define RED "\x1b[31m"
#define GREEN "\x1b[32m"
#define DIM "\x1b[2m"
#define BOLD "\x1b[1m"
#define PLAIN "\x1b[0m"

/* Columns, taking every character for one wide; what follows the last that fits is cut. */
static void line_put(const struct view *v, const char *colour, const struct buf *b)
{
    size_t columns = 0, n = 0, width = v->term->width > 0 ? (size_t)v->term->width : SIZE_MAX;
    while (n < b->len && columns < width) {
        n++;
        while (n < b->len && ((unsigned char)b->ptr[n] & 0xc0) == 0x80)
            n++;
        columns++;
    }
    fprintf(v->out, "%s%.*s%s\n", paint(v, colour), (int)n, b->ptr ? b->ptr : "",
            colour[0] != '\0' ? paint(v, PLAIN) : "");
}

static struct buf line_new(const struct view *v)
{
    return (struct buf){ .arena = v->a, .max = (size_t)1 << 20 };
}

/* ---- a turn in a line ---- */

static int context_percent(const struct trace *t, const struct trace_turn *turn)
{
    int64_t window = trace_int(json_object_get(t->start, "budget"), "window", 0);
    int64_t used = trace_int(json_object_get(turn->response, "usage"), "input_total", 0);
    used = used > 0 ? used : trace_int(turn->request, "tokens", 0);
    if (window <= 0 || used <= 0)
        return -1;
    double share = 100.0 * (double)used / (double)window;
    return share < 1000 ? (int)share : 999;
}

/* "Edit kernels/softmax.cu" */
static void call_add(struct buf *b, const struct chat_part *p)
{
    static const char *const telling[] = { "command", "file_path", "pattern", "idea", "bash_id" };
    own_json args = json_loadb(p->args.ptr ? p->args.ptr : "", p->args.len, 0, NULL);
    export_line(b, p->name, 40);
    for (size_t i = 0; i < COUNT(telling); i++) {
        struct str s = trace_text(args, telling[i]);
        if (s.len == 0)
            continue;
        buf_addz(b, " ");
        export_line(b, s, 60);
        return;
    }
}

static void eval_add(struct buf *b, const json_t *e)
{
    const json_t *verdict = json_object_get(e, "verdict");
    double us;
    export_line(b, trace_text(e, "step"), 20);
    buf_addz(b, " = ");
    export_line(b, trace_text(verdict, "status"), 20);
    if (trace_time(verdict, "candidate", &us))
        buf_addf(b, " %.2f us", us);
    if (json_is_true(json_object_get(e, "best")))
        buf_addz(b, " *best*");
    struct str reason = trace_text(verdict, "reason");
    if (reason.len > 0) {
        buf_addz(b, " (");
        export_line(b, reason, 80);
        buf_addz(b, ")");
    }
}

static void other_add(struct buf *b, const json_t *e)
{
    static const struct {
        const char *event, *key;
    } rows[] = { { "message", "kind" },
                 { "context", "kind" },
                 { "limit", "what" },
                 { "error", "text" },
                 { "resumed", "" } };
    for (size_t i = 0; i < COUNT(rows); i++) {
        if (!trace_is(e, rows[i].event))
            continue;
        buf_addf(b, "[%s", strcmp(rows[i].event, "message") == 0 ? "user" : rows[i].event);
        buf_addz(b, rows[i].key[0] != '\0' ? " " : "");
        export_line(b, trace_text(e, rows[i].key), 60);
        buf_addz(b, "]");
    }
}

static const struct chat_part *call_of(const struct view *v, const json_t *e)
{
    return trace_is(e, "tool_end") ? trace_call(v->t, e) : NULL;
}

static bool is_eval_call(const struct trace_turn *turn, const struct trace *t, const json_t *end)
{
    for (size_t i = turn->first; i < turn->first + turn->n; i++)
        if (trace_is(t->event[i], "eval") &&
            str_eq(trace_text(t->event[i], "step"), trace_text(end, "name")))
            return true;
    return false;
}

static void what_add(const struct view *v, const struct trace_turn *turn, struct buf *b)
{
    size_t n = 0;
    for (size_t i = turn->first; i < turn->first + turn->n; i++) {
        const json_t *e = v->t->event[i];
        const struct chat_part *call = call_of(v, e);
        struct buf one = line_new(v);
        if (trace_is(e, "eval"))
            eval_add(&one, e);
        else if (call != NULL && !is_eval_call(turn, v->t, e))
            call_add(&one, call);
        else
            other_add(&one, e);
        if (one.len == 0)
            continue;
        if (trace_is(e, "tool_end") && json_is_true(json_object_get(e, "failed")))
            buf_addz(&one, "!");
        buf_addz(b, n++ > 0 ? "; " : "");
        buf_add(b, (struct str){ one.ptr, one.len });
    }
    struct str end = trace_text(turn->response, "end");
    if (end.len > 0 && !str_eq(end, S("stop"))) {
        buf_addz(b, n++ > 0 ? "; answer: " : "answer: ");
        export_line(b, end, 20);
    }
    const json_t *parts = json_object_get(turn->response, "parts");
    for (size_t i = 0; i < json_array_size(parts) && n == 0; i++) {
        buf_addz(b, "\"");
        export_line(b, trace_text(json_array_get(parts, i), "text"), 80);
        buf_addz(b, "\"");
        n++;
    }
}

static const char *turn_colour(const struct trace *t, const struct trace_turn *turn)
{
    const char *colour = "";
    for (size_t i = turn->first; i < turn->first + turn->n; i++) {
        const json_t *e = t->event[i];
        struct str status = trace_text(json_object_get(e, "verdict"), "status");
        if (!trace_is(e, "eval"))
            continue;
        bool right = str_eq(status, S("pass")) || str_eq(status, S("undecided"));
        colour = !right ? RED : json_is_true(json_object_get(e, "best")) ? GREEN : "";
    }
    return colour;
}

static void turn_line(const struct view *v, const struct trace_turn *turn)
{
    struct buf b = line_new(v);
    double from = (double)trace_int(v->t->start, "at", 0) / 1e6;
    const json_t *last = v->t->event[turn->first + turn->n - 1];
    double to = (double)trace_int(turn->end ? turn->end : last, "at", 0) / 1e6;
    int percent = context_percent(v->t, turn);
    if (turn->numbered)
        buf_addf(&b, "%5lld %8.1f ", (long long)turn->turn, to - from);
    else
        buf_addf(&b, "%5s %8.1f ", "-", to - from);
    if (percent >= 0)
        buf_addf(&b, "%3d%% ", percent);
    else
        buf_addz(&b, "     ");
    buf_addf(&b, "%7lld  ",
             (long long)trace_int(json_object_get(turn->response, "usage"), "output_total", 0));
    what_add(v, turn, &b);
    line_put(v, turn_colour(v->t, turn), &b);
}

/* ---- head and foot ---- */

static void named(struct buf *b, const char *label, struct str s)
{
    if (s.len == 0)
        return;
    buf_addz(b, label);
    export_line(b, s, LINE_BYTES);
}

static void head_put(const struct view *v)
{
    const struct trace *t = v->t;
    struct buf b = line_new(v);
    named(&b, "", trace_text(json_object_get(t->start, "task"), "name"));
    named(&b, "  ", trace_text(t->start, "target"));
    named(&b, "  ", trace_text(json_object_get(t->start, "endpoint"), "model"));
    named(&b, "  began ", str_from(trace_when(v->a, t->start)));
    line_put(v, BOLD, &b);
    b = line_new(v);
    buf_addz(&b, " turn  seconds  ctx  tokens  what");
    line_put(v, DIM, &b);
}

static void foot_put(const struct view *v)
{
    const struct trace *t = v->t;
    const json_t *totals = trace_totals(t), *best = trace_best(t);
    struct trace_outcome o = trace_outcome(t);
    struct buf b = line_new(v);
    double us, cost = 0;
    named(&b, "", trace_status(t));
    named(&b, ": ", trace_text(t->finished, "reason"));
    if (trace_time(best, "candidate", &us))
        buf_addf(&b, "; best %.2f us at turn %lld", us,
                 (long long)trace_int(t->best_eval, "turn", -1));
    if (o.speedup > 0)
        buf_addf(&b, ", %.2fx of compile", o.speedup);
    line_put(v, o.passed ? GREEN : RED, &b);
    b = line_new(v);
    trace_real(totals, "cost", &cost);
    buf_addf(&b, "%lld tokens in (%lld cached), %lld out, cost %.4f; milestone %d",
             (long long)trace_int(totals, "input", 0), (long long)trace_int(totals, "cached", 0),
             (long long)trace_int(totals, "output", 0), cost, o.milestone);
    if (t->n_dropped > 0)
        buf_addf(&b, "; %zu events do not count (resumed)", t->n_dropped);
    if (t->torn)
        buf_addz(&b, "; the log's last line is half a one");
    line_put(v, "", &b);
}

void export_view(const struct trace *t, const struct export_terminal *term, FILE *out)
{
    own_arena a = { 0 };
    struct view v = { t, term, out, &a };
    if (t->start == NULL) {
        fputs("the log holds no event yet\n", out);
        return;
    }
    head_put(&v);
    for (size_t i = 0; i < t->n_turns; i++) {
        struct arena_mark mark = arena_mark(&a);
        turn_line(&v, &t->turn[i]);
        arena_rewind(&a, mark);
    }
    foot_put(&v);
}

/* ---- one turn whole ---- */

static void block_put(const struct view *v, const char *title, struct str detail, struct str text)
{
    struct buf b = line_new(v), body = { .arena = v->a, .max = SIZE_MAX / 4 };
    buf_addz(&b, "--- ");
    buf_addz(&b, title);
    named(&b, " ", detail);
    line_put(v, BOLD, &b);
    export_plain(&body, text);
    if (body.len > 0)
        fprintf(v->out, "%.*s%s", (int)body.len, body.ptr,
                body.ptr[body.len - 1] == '\n' ? "" : "\n");
}

/* Arguments are read better a member a block than as one line of JSON. */
static void call_put(const struct view *v, const struct chat_part *p)
{
    own_json args = json_loadb(p->args.ptr ? p->args.ptr : "", p->args.len, 0, NULL);
    const char *key;
    json_t *value;
    if (!json_is_object(args)) {
        block_put(v, "call", p->name, p->args);
        return;
    }
    block_put(v, "call", p->name, S(""));
    json_object_foreach(args, key, value)
    {
        own_mem char *dump =
            json_is_string(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        struct str text = dump
                              ? str_from(dump)
                              : (struct str){ json_string_value(value), json_string_length(value) };
        block_put(v, "   ", str_from(key), str_copy(v->a, text));
    }
}

static void message_put(const struct view *v, const struct trace_message *m)
{
    for (size_t i = 0; i < m->chat.n_parts; i++) {
        const struct chat_part *p = &m->chat.parts[i];
        switch (p->kind) {
        case CHAT_TEXT:
            block_put(v, m->role == CHAT_USER ? "user" : "text", str_from(m->kind), p->text);
            break;
        case CHAT_THINKING:
            block_put(v, "thinking", S(""), p->text);
            break;
        case CHAT_SEALED:
            block_put(v, "thinking, sealed", S(""), S(""));
            break;
        case CHAT_CALL:
            call_put(v, p);
            break;
        case CHAT_RESULT:
            block_put(v, p->is_error ? "failed" : "result", p->name, p->text);
            break;
        }
    }
}

static void event_put(const struct view *v, const json_t *e)
{
    struct buf b = line_new(v);
    if (trace_is(e, "eval")) {
        own_mem char *dump = json_dumps(json_object_get(e, "verdict"), JSON_INDENT(1));
        eval_add(&b, e);
        block_put(v, "verdict", (struct str){ b.ptr, b.len }, str_from(dump));
    } else if (trace_is(e, "fs")) {
        const json_t *before = trace_tree(v->t, trace_int(e, "turn", 0) - 1);
        b.max = (size_t)64 << 20;
        trace_diff(v->t, before == e ? NULL : before, e, &b);
        block_put(v, "files", S(""), (struct str){ b.ptr, b.len });
    } else if (trace_is(e, "context") || trace_is(e, "limit") || trace_is(e, "error") ||
               trace_is(e, "resumed")) {
        own_mem char *dump = json_dumps(e, JSON_INDENT(1));
        block_put(v, "event", trace_text(e, "event"), str_from(dump));
    }
}

enum err_code export_turn(const struct trace *t, int64_t turn, const struct export_terminal *term,
                          FILE *out, struct err *err)
{
    own_arena a = { 0 };
    struct view v = { t, term, out, &a };
    const struct trace_turn *found = NULL;
    for (size_t i = 0; i < t->n_turns; i++)
        if (t->turn[i].numbered && t->turn[i].turn == turn)
            found = &t->turn[i];
    if (found == NULL) {
        err_raise(err, ERR_USAGE, "there is no turn %lld", (long long)turn);
        return err_hint(err, "without --turn the turns are listed");
    }
    size_t next = 0;
    while (next < t->n_messages && t->message[next].at < found->first)
        next++;
    for (size_t i = found->first; i < found->first + found->n; i++) {
        for (; next < t->n_messages && t->message[next].at <= i; next++)
            message_put(&v, &t->message[next]);
        event_put(&v, t->event[i]);
    }
    return OK;
}
