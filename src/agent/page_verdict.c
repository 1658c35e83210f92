/* A verdict on the page: what a person asks first, as docs/verdict.md names it. */
#include "agent/page.h"

static void add(const struct page *p, const char *z)
{
    buf_addz(p->b, z);
}

static void row(const struct page *p, const char *name, struct str value)
{
    if (value.len == 0)
        return;
    buf_addf(p->b, "<tr><th>%s</th><td>", name);
    page_text(p, value);
    add(p, "</td></tr>");
}

static void times(const struct page *p, struct arena *a, const json_t *v)
{
    static const char *const arms[] = { "candidate", "eager", "compile", "best" };
    static const char *const ratios[] = { NULL, "vs_eager", "vs_compile", "vs_best" };
    for (size_t i = 0; i < COUNT(arms); i++) {
        const json_t *ratio =
            ratios[i] ? json_object_get(json_object_get(v, "speedup"), ratios[i]) : NULL;
        double us, m, lo = 0, hi = 0;
        struct buf b = { .arena = a, .max = 4096 };
        if (!trace_time(v, arms[i], &us))
            continue;
        buf_addf(&b, "%.2f us", us);
        if (trace_real(ratio, "median", &m)) {
            trace_real(ratio, "lo", &lo);
            trace_real(ratio, "hi", &hi);
            buf_addf(&b, ": %.2fx [%.2f, %.2f]", m, lo, hi);
        }
        struct str name =
            trace_text(json_object_get(json_object_get(v, "time_us"), arms[i]), "name");
        buf_addz(&b, name.len > 0 ? " " : "");
        buf_add(&b, name);
        row(p, arms[i], (struct str){ b.ptr, b.len });
    }
}

static void checks(const struct page *p, struct arena *a, const json_t *v)
{
    size_t i, right = 0, told = 0;
    json_t *c;
    json_array_foreach(json_object_get(v, "checks"), i, c)
    {
        int64_t misses = trace_int(c, "misses", 0);
        struct str family = trace_text(c, "family"), output = trace_text(c, "output");
        double err = 0;
        right += misses == 0;
        if (misses == 0 || told++ >= 8)
            continue;
        trace_real(c, "max_err", &err);
        row(p, "off",
            str_from(arena_fmt(a, "%.*s, %.*s: %lld of %lld, largest error %.3g", STR_FMT(output),
                               STR_FMT(family), (long long)misses, (long long)trace_int(c, "n", 0),
                               err)));
    }
    if (right > 0)
        row(p, "right",
            str_from(arena_fmt(a, "%zu of %zu checks", right,
                               json_array_size(json_object_get(v, "checks")))));
}

static void facts(const struct page *p, struct arena *a, const json_t *v)
{
    const json_t *reward = json_object_get(v, "reward");
    double share;
    size_t i;
    json_t *note;
    row(p, "reason", trace_text(v, "reason"));
    checks(p, a, v);
    times(p, a, v);
    row(p, "precision", trace_text(json_object_get(v, "precision"), "class"));
    if (json_is_integer(json_object_get(reward, "milestone")))
        row(p, "milestone",
            str_from(arena_fmt(a, "%lld", (long long)trace_int(reward, "milestone", 0))));
    if (trace_real(json_object_get(v, "floor"), "share", &share))
        row(p, "share of the floor", str_from(arena_fmt(a, "%.2f", share)));
    json_array_foreach(json_object_get(v, "notes"), i, note)
        row(p, "note", str_from(json_string_value(note)));
}

void page_verdict(const struct page *p, const json_t *eval)
{
    own_arena a = { 0 };
    const json_t *v = json_object_get(eval, "verdict");
    bool pass = str_eq(trace_text(v, "status"), S("pass"));
    add(p, "<details open><summary><span class=\"dim\">verdict</span> ");
    page_text(p, trace_text(eval, "step"));
    add(p, pass ? ": <span class=\"good\">" : ": <span class=\"badtext\">");
    page_text(p, trace_text(v, "status"));
    add(p, json_is_true(json_object_get(eval, "best")) ? ", best so far</span>" : "</span>");
    if (trace_text(eval, "idea").len > 0) {
        add(p, " <span class=\"dim\">");
        page_text(p, trace_text(eval, "idea"));
        add(p, "</span>");
    }
    add(p, "</summary><table>");
    facts(p, &a, v);
    add(p, "</table>");
    if (trace_text(v, "build_log").len > 0)
        page_block(p, "compiler", S(""), trace_text(v, "build_log"), eval);
    add(p, "</details>");
}
