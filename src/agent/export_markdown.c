/* An episode as a text to read: whole, in the order in which it went. */
#include "agent/export.h"

struct page {
    const struct trace *t;
    FILE *out;
};

static void put(FILE *out, const struct buf *b)
{
    if (b->len > 0)
        fwrite(b->ptr, 1, b->len, out);
}

/* A fence longer than any run of its mark in the text. */
static void fenced(FILE *out, struct str text)
{
    own_arena tmp = { 0 };
    struct buf b = { .arena = &tmp, .max = SIZE_MAX / 4 };
    size_t run = 0, longest = 2;
    for (size_t i = 0; i < text.len; i++) {
        run = text.ptr[i] == '`' ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    const char *end = text.len > 0 && text.ptr[text.len - 1] == '\n' ? "" : "\n";
    export_plain(&b, text);
    for (size_t side = 0; side < 2; side++) {
        for (size_t i = 0; i <= longest; i++)
            fputc('`', out);
        fputc('\n', out);
        if (side == 0) {
            put(out, &b);
            fputs(end, out);
        }
    }
    fputc('\n', out);
}

/* Others' words in a line of ours: as code, in which nothing is markup. */
static void named(FILE *out, const char *label, struct str s)
{
    own_arena tmp = { 0 };
    struct buf b = { .arena = &tmp, .max = 4096 };
    export_line(&b, s, 300);
    for (size_t i = 0; i < b.len; i++)
        if (b.ptr[i] == '`')
            b.ptr[i] = '\'';
    if (b.len > 0)
        fprintf(out, "%s`%.*s`", label, (int)b.len, b.ptr);
}

static void head(const struct page *p)
{
    own_arena tmp = { 0 };
    const struct trace *t = p->t;
    double us;
    fputs("# Episode", p->out);
    named(p->out, " of ", trace_text(json_object_get(t->start, "task"), "name"));
    named(p->out, "\n\nmodel ", trace_text(json_object_get(t->start, "endpoint"), "model"));
    named(p->out, ", target ", trace_text(t->start, "target"));
    named(p->out, ", began ", str_from(trace_when(&tmp, t->start)));
    named(p->out, "\n\nended: ", trace_status(t));
    named(p->out, ", ", trace_text(t->finished, "reason"));
    if (trace_time(trace_best(t), "candidate", &us))
        fprintf(p->out, "; best %.2f us, %.2fx of compile", us, trace_outcome(t).speedup);
    fputs("\n\n", p->out);
    if (trace_text(t->start, "system").len > 0) {
        fputs("## System\n\n", p->out);
        fenced(p->out, trace_text(t->start, "system"));
    }
}

static void message(const struct page *p, const struct trace_message *m)
{
    static const char *const names[] = { [CHAT_TEXT] = "text",
                                         [CHAT_THINKING] = "thinking",
                                         [CHAT_SEALED] = "sealed thinking",
                                         [CHAT_CALL] = "call",
                                         [CHAT_RESULT] = "result" };
    for (size_t i = 0; i < m->chat.n_parts; i++) {
        const struct chat_part *part = &m->chat.parts[i];
        fprintf(p->out, "### %s",
                m->role == CHAT_USER && part->kind == CHAT_TEXT ? "user" : names[part->kind]);
        named(p->out, " ", part->name);
        named(p->out, " ",
              part->kind == CHAT_CALL || part->kind == CHAT_RESULT
                  ? part->id
                  : str_from(m->role == CHAT_USER ? m->kind : NULL));
        fputs(part->is_error ? " (failed)\n\n" : "\n\n", p->out);
        fenced(p->out, part->kind == CHAT_CALL ? part->args : part->text);
    }
}

static void eval(const struct page *p, const json_t *e)
{
    const json_t *v = json_object_get(e, "verdict");
    double us;
    fputs("### verdict", p->out);
    named(p->out, " ", trace_text(e, "step"));
    named(p->out, ": ", trace_text(v, "status"));
    named(p->out, " ", trace_text(v, "reason"));
    if (trace_time(v, "candidate", &us))
        fprintf(p->out, " %.2f us", us);
    fputs(json_is_true(json_object_get(e, "best")) ? " (the best so far)\n\n" : "\n\n", p->out);
}

static void other(const struct page *p, const json_t *e)
{
    if (trace_is(e, "eval")) {
        eval(p, e);
    } else if (trace_is(e, "context")) {
        fputs("### context", p->out);
        named(p->out, " ", trace_text(e, "kind"));
        fprintf(p->out, ": %lld to %lld tokens, %zu texts shortened, %zu messages dropped\n\n",
                (long long)trace_int(e, "before", 0), (long long)trace_int(e, "after", 0),
                json_array_size(json_object_get(e, "items")),
                json_array_size(json_object_get(e, "dropped")));
        if (trace_text(e, "summary").len > 0)
            fenced(p->out, trace_text(e, "summary"));
    } else if (trace_is(e, "limit")) {
        fputs("### limit", p->out);
        named(p->out, " ", trace_text(e, "what"));
        fputs("\n\n", p->out);
    } else if (trace_is(e, "error")) {
        fputs("### error", p->out);
        named(p->out, " ", trace_text(e, "code"));
        fputs("\n\n", p->out);
        fenced(p->out, trace_text(e, "text"));
    } else if (trace_is(e, "resumed")) {
        fputs("### resumed\n\n", p->out);
    } else if (trace_is(e, "fs")) {
        own_arena tmp = { 0 };
        struct buf b = { .arena = &tmp, .max = (size_t)64 << 20 };
        const json_t *before = trace_tree(p->t, trace_int(e, "turn", 0) - 1);
        trace_diff(p->t, before == e ? NULL : before, e, &b);
        if (b.len > 0) {
            fputs("### files\n\n", p->out);
            fenced(p->out, (struct str){ b.ptr, b.len });
        }
    }
}

void export_markdown(const struct trace *t, FILE *out)
{
    struct page p = { t, out };
    size_t next = 0;
    head(&p);
    for (size_t k = 0; k < t->n_turns; k++) {
        const struct trace_turn *turn = &t->turn[k];
        if (turn->numbered)
            fprintf(out, "## Turn %lld\n\n", (long long)turn->turn);
        for (size_t i = turn->first; i < turn->first + turn->n; i++) {
            for (; next < t->n_messages && t->message[next].at <= i; next++)
                message(&p, &t->message[next]);
            other(&p, t->event[i]);
        }
    }
}
