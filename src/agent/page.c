#include "agent/page.h"

#include <math.h>

static void add(const struct page *p, const char *z)
{
    buf_addz(p->b, z);
}

void page_text(const struct page *p, struct str s)
{
    own_arena tmp = { 0 };
    struct buf line = { .arena = &tmp, .max = 1 << 16 };
    export_line(&line, s, 300);
    /* Shown characters stay as they are, so that the second pass only escapes. */
    export_html(p->b, (struct str){ line.ptr, line.len });
}

static struct str cut(struct str s, size_t n)
{
    if (s.len <= n)
        return s;
    while (n > 0 && ((unsigned char)s.ptr[n] & 0xc0) == 0x80)
        n--;
    return (struct str){ s.ptr, n };
}

static void cut_note(const struct page *p, size_t shown, size_t all, const json_t *event)
{
    if (shown < all)
        buf_addf(p->b,
                 "<p class=\"warn\">cut: %zu of %zu bytes; the whole is in " TRACE_LOG
                 ", seq %lld</p>",
                 shown, all, (long long)trace_int(event, "seq", -1));
}

#define SHORT 600 /* bytes that are shown without a click */

void page_block(const struct page *p, const char *label, struct str detail, struct str text,
                const json_t *event)
{
    struct str shown = cut(text, p->text_max);
    buf_addf(p->b, "<details%s><summary><span class=\"dim\">%s</span> ",
             text.len <= SHORT ? " open" : "", label);
    page_text(p, detail);
    if (text.len > SHORT) {
        buf_addf(p->b, " <span class=\"dim\">%zu bytes: ", text.len);
        page_text(p, cut(text, 80));
        add(p, "</span>");
    }
    add(p, "</summary>");
    if (text.len > 0) {
        add(p, "<pre>");
        export_html(p->b, shown);
        add(p, "</pre>");
    }
    cut_note(p, shown.len, text.len, event);
    add(p, "</details>");
}

void page_diff(const struct page *p, struct str diff, const json_t *event)
{
    struct str shown = cut(diff, p->text_max), rest = shown, line;
    if (diff.len == 0)
        return;
    add(p, "<details open><summary><span class=\"dim\">files</span></summary><pre>");
    while (str_cut(&rest, '\n', &line)) {
        char c = line.len > 0 ? line.ptr[0] : ' ';
        const char *class = c == '+' ? "a" : c == '-' ? "d" : c == '@' ? "h" : NULL;
        if (class != NULL)
            buf_addf(p->b, "<span class=\"%s\">", class);
        export_html(p->b, line);
        add(p, class != NULL ? "</span>\n" : "\n");
    }
    add(p, "</pre>");
    cut_note(p, shown.len, diff.len, event);
    add(p, "</details>");
}

bool page_context(const struct trace *t, const struct trace_turn *turn, double *ret)
{
    int64_t window = trace_int(json_object_get(t->start, "budget"), "window", 0);
    int64_t used = trace_int(json_object_get(turn->response, "usage"), "input_total", 0);
    used = used > 0 ? used : trace_int(turn->request, "tokens", 0);
    if (window <= 0 || used <= 0)
        return false;
    *ret = fmin(100.0 * (double)used / (double)window, 999);
    return true;
}

/* ---- the head ---- */

static void fact(const struct page *p, const char *name, struct str value)
{
    if (value.len == 0)
        return;
    buf_addf(p->b, "<div><dt>%s</dt><dd>", name);
    page_text(p, value);
    add(p, "</dd></div>");
}

static void fact_totals(const struct page *p, struct arena *a)
{
    const json_t *totals = trace_totals(p->t);
    double cost = 0, seconds = 0;
    if (totals == NULL)
        return;
    trace_real(totals, "cost", &cost);
    trace_real(totals, "seconds", &seconds);
    fact(p, "turns", str_from(arena_fmt(a, "%lld", (long long)trace_int(totals, "turns", 0))));
    fact(p, "tokens in (cached), out",
         str_from(arena_fmt(a, "%lld (%lld), %lld", (long long)trace_int(totals, "input", 0),
                            (long long)trace_int(totals, "cached", 0),
                            (long long)trace_int(totals, "output", 0))));
    fact(p, "cost", str_from(arena_fmt(a, "%.4f", cost)));
    fact(p, "time", str_from(arena_fmt(a, "%.0f s", seconds)));
}

static void fact_best(const struct page *p, struct arena *a)
{
    const json_t *best = trace_best(p->t), *speedup = json_object_get(best, "speedup");
    struct trace_outcome o = trace_outcome(p->t);
    double us, ratio;
    if (!trace_time(best, "candidate", &us)) {
        fact(p, "best", o.passed ? S("right, not timed") : S("none"));
        return;
    }
    fact(p, "best",
         str_from(arena_fmt(a, "%.2f us, turn %lld", us,
                            (long long)trace_int(p->t->best_eval, "turn", -1))));
    if (trace_real(json_object_get(speedup, "vs_compile"), "median", &ratio))
        fact(p, "against compile", str_from(arena_fmt(a, "%.2fx", ratio)));
    if (trace_real(json_object_get(speedup, "vs_best"), "median", &ratio))
        fact(p, "against the best of PyTorch", str_from(arena_fmt(a, "%.2fx", ratio)));
    fact(p, "milestone", str_from(arena_fmt(a, "%d", o.milestone)));
}

static void head(const struct page *p)
{
    own_arena a = { 0 };
    const struct trace *t = p->t;
    struct str task = trace_text(json_object_get(t->start, "task"), "name");
    add(p, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
           "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
           "style-src 'unsafe-inline'; script-src 'sha256-");
    add(p, page_script_hash);
    add(p, "'; base-uri 'none'; form-action 'none'\">"
           "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>");
    page_text(p, task);
    add(p, " - cuda-agent</title><style>");
    add(p, page_style);
    add(p, "</style></head>\n<body><header><h1>");
    page_text(p, task);
    add(p, "</h1><dl>");
    fact(p, "ended", trace_status(t));
    fact(p, "reason", trace_text(t->finished, "reason"));
    fact(p, "model", trace_text(json_object_get(t->start, "endpoint"), "model"));
    fact(p, "target", trace_text(t->start, "target"));
    fact_best(p, &a);
    fact_totals(p, &a);
    fact(p, "began", str_from(trace_when(&a, t->start)));
    fact(p, "episode", trace_text(t->start, "episode"));
    add(p, "</dl></header>\n");
}

/* ---- turns ---- */

static void message(const struct page *p, const struct trace_message *m)
{
    for (size_t i = 0; i < m->chat.n_parts; i++) {
        const struct chat_part *part = &m->chat.parts[i];
        const json_t *event = p->t->event[m->at];
        switch (part->kind) {
        case CHAT_TEXT:
            page_block(p, m->role == CHAT_USER ? "user" : "text", str_from(m->kind), part->text,
                       event);
            break;
        case CHAT_THINKING:
            page_block(p, "thinking", S(""), part->text, event);
            break;
        case CHAT_SEALED:
            page_block(p, "thinking", S("sealed"), S(""), event);
            break;
        case CHAT_CALL:
            page_block(p, "call", part->name, part->args, event);
            break;
        case CHAT_RESULT:
            page_block(p, part->is_error ? "<span class=\"badtext\">failed</span>" : "result",
                       part->name, part->text, event);
            break;
        }
    }
}

static void context(const struct page *p, const json_t *e)
{
    buf_addf(p->b, "<p class=\"warn\">context ");
    page_text(p, trace_text(e, "kind"));
    buf_addf(p->b, ": %lld to %lld tokens, %zu texts shortened, %zu messages dropped</p>",
             (long long)trace_int(e, "before", 0), (long long)trace_int(e, "after", 0),
             json_array_size(json_object_get(e, "items")),
             json_array_size(json_object_get(e, "dropped")));
    if (trace_text(e, "summary").len > 0)
        page_block(p, "summary", S(""), trace_text(e, "summary"), e);
}

static void other(const struct page *p, const json_t *e)
{
    if (trace_is(e, "eval")) {
        page_verdict(p, e);
    } else if (trace_is(e, "context")) {
        context(p, e);
    } else if (trace_is(e, "error")) {
        page_block(p, "<span class=\"badtext\">error</span>", trace_text(e, "code"),
                   trace_text(e, "text"), e);
    } else if (trace_is(e, "limit")) {
        add(p, "<p class=\"warn\">limit: ");
        page_text(p, trace_text(e, "what"));
        add(p, json_is_true(json_object_get(e, "ended")) ? ", reached</p>" : ", near</p>");
    } else if (trace_is(e, "resumed")) {
        add(p, "<p class=\"warn\">a later process goes on from here</p>");
    } else if (trace_is(e, "fs")) {
        own_arena tmp = { 0 };
        struct buf b = { .arena = &tmp, .max = (size_t)64 << 20 };
        const json_t *before = trace_tree(p->t, trace_int(e, "turn", 0) - 1);
        trace_diff(p->t, before == e ? NULL : before, e, &b);
        page_diff(p, (struct str){ b.ptr, b.len }, e);
    }
}

/* The calls' names, and what the examiner said. */
static void turn_words(const struct page *p, const struct trace_turn *turn)
{
    for (size_t i = turn->first; i < turn->first + turn->n; i++) {
        const json_t *e = p->t->event[i], *verdict = json_object_get(e, "verdict");
        double us;
        if (trace_is(e, "tool_end")) {
            bool failed = json_is_true(json_object_get(e, "failed"));
            add(p, failed ? " <span class=\"badtext\">" : " <span>");
            page_text(p, trace_text(e, "name"));
            add(p, failed ? " failed</span>" : "</span>");
        } else if (trace_is(e, "eval")) {
            struct str status = trace_text(verdict, "status");
            add(p,
                str_eq(status, S("pass")) ? " <span class=\"good\">" : " <span class=\"badtext\">");
            page_text(p, status);
            if (trace_time(verdict, "candidate", &us))
                buf_addf(p->b, " %.2f us", us);
            add(p, json_is_true(json_object_get(e, "best")) ? ", best</span>" : "</span>");
        } else if (trace_is(e, "context") || trace_is(e, "limit") || trace_is(e, "error") ||
                   trace_is(e, "resumed")) {
            add(p, " <span class=\"warn\">");
            page_text(p, trace_text(e, "event"));
            add(p, "</span>");
        }
    }
}

static const char *turn_class(const struct page *p, const struct trace_turn *turn)
{
    const char *class = "turn";
    for (size_t i = turn->first; i < turn->first + turn->n; i++) {
        const json_t *e = p->t->event[i];
        if (trace_is(e, "eval") && json_is_true(json_object_get(e, "best")))
            return "turn best";
        struct str status = trace_text(json_object_get(e, "verdict"), "status");
        if (trace_is(e, "error") || (trace_is(e, "eval") && !str_eq(status, S("pass"))))
            class = "turn bad";
    }
    return class;
}

static void turn_summary(const struct page *p, const struct trace_turn *turn)
{
    const json_t *usage = json_object_get(turn->response, "usage");
    double percent, cost = 0;
    struct str end = trace_text(turn->response, "end");
    add(p, "<summary><b>");
    if (turn->numbered)
        buf_addf(p->b, "turn %lld", (long long)turn->turn);
    else
        add(p, "after the last turn");
    add(p, "</b> <span class=\"dim\">");
    if (page_context(p->t, turn, &percent))
        buf_addf(p->b, "%.0f%% of the window, ", percent);
    trace_real(turn->response, "cost", &cost);
    buf_addf(p->b, "%lld out, %.4f, %.1f s</span>", (long long)trace_int(usage, "output_total", 0),
             cost, (double)trace_int(turn->response, "ms", 0) / 1e3);
    if (end.len > 0 && !str_eq(end, S("stop"))) {
        add(p, " <span class=\"badtext\">");
        page_text(p, end);
        add(p, "</span>");
    }
    turn_words(p, turn);
    add(p, "</summary>");
}

static void turns(const struct page *p)
{
    size_t next = 0;
    for (size_t k = 0; k < p->t->n_turns; k++) {
        const struct trace_turn *turn = &p->t->turn[k];
        buf_addf(p->b, "<details class=\"%s\"", turn_class(p, turn));
        if (turn->numbered)
            buf_addf(p->b, " id=\"t%lld\"", (long long)turn->turn);
        add(p, ">");
        turn_summary(p, turn);
        for (size_t i = turn->first; i < turn->first + turn->n; i++) {
            for (; next < p->t->n_messages && p->t->message[next].at <= i; next++)
                message(p, &p->t->message[next]);
            other(p, p->t->event[i]);
        }
        add(p, "</details>\n");
    }
}

static void whole(const struct page *p)
{
    head(p);
    page_plots(p);
    page_block(p, "system", S(""), trace_text(p->t->start, "system"), p->t->start);
    add(p, "<p class=\"hint\"><kbd>j</kbd> <kbd>k</kbd> next, previous turn &#183; <kbd>o</kbd> "
           "open, close &#183; <kbd>e</kbd> all</p>\n<main>");
    turns(p);
    add(p, "</main>");
    if (p->t->n_dropped > 0)
        buf_addf(p->b, "<p class=\"hint\">%zu events of a process that died do not count.</p>",
                 p->t->n_dropped);
    if (p->t->torn)
        add(p, "<p class=\"hint\">The log's last line is half a one.</p>");
    add(p, "<script>");
    add(p, page_script);
    add(p, "</script></body></html>\n");
}

void page_write(const struct trace *t, FILE *out)
{
    for (size_t text_max = PAGE_TEXT_MAX;; text_max /= 2) {
        own_arena a = { 0 };
        struct buf b = { .arena = &a, .max = SIZE_MAX / 4 };
        struct page p = { t, &b, text_max };
        whole(&p);
        if (b.len > PAGE_BYTES_MAX && text_max / 2 >= PAGE_TEXT_MIN)
            continue;
        fwrite(b.ptr, 1, b.len, out);
        return;
    }
}
