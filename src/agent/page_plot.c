/* Two plots as SVG: the examiner's times over the turns, and how full the context was. */
#include <math.h>

#include "agent/page.h"

#define WIDTH 760
#define LEFT 52
#define RIGHT 96 /* names of the lines */
#define TOP 12
#define TIMES_HEIGHT 250
#define CONTEXT_HEIGHT 90
#define FLOOR 22 /* below the plot: marks of what failed, and numbers of turns */

struct scale {
    double lo, hi;         /* times, as logarithms */
    int64_t first, last;   /* turns */
    double x0, x1, y0, y1; /* where lo, first stand, and hi, last */
};

static double x_of(const struct scale *s, int64_t turn)
{
    double share = s->last > s->first
                       ? ((double)turn - (double)s->first) / ((double)s->last - (double)s->first)
                       : 0.5;
    return s->x0 + share * (s->x1 - s->x0);
}

static double y_of(const struct scale *s, double us)
{
    return s->y0 + (log10(us) - s->lo) / (s->hi - s->lo) * (s->y1 - s->y0);
}

static bool turns_span(const struct trace *t, struct scale *s)
{
    bool any = false;
    for (size_t i = 0; i < t->n_turns; i++) {
        if (!t->turn[i].numbered || t->turn[i].response == NULL)
            continue;
        int64_t n = t->turn[i].turn;
        s->first = any && s->first < n ? s->first : n;
        s->last = any && s->last > n ? s->last : n;
        any = true;
    }
    return any;
}

static void span_take(struct scale *s, bool *any, double us)
{
    double l = log10(us);
    s->lo = *any && s->lo < l ? s->lo : l;
    s->hi = *any && s->hi > l ? s->hi : l;
    *any = true;
}

static const char *const arms[] = { "eager", "compile", "best" };
static const char *const arm_names[] = { "eager", "compile", "best of PyTorch" };

static bool times_span(const struct trace *t, struct scale *s)
{
    bool any = false;
    double us;
    for (size_t i = 0; i < t->n_events; i++) {
        const json_t *v = json_object_get(t->event[i], "verdict");
        if (!trace_is(t->event[i], "eval") || !trace_time(v, "candidate", &us))
            continue;
        span_take(s, &any, us);
        for (size_t k = 0; k < COUNT(arms); k++)
            if (trace_time(v, arms[k], &us))
                span_take(s, &any, us);
    }
    s->lo -= 0.05;
    s->hi += 0.05;
    return any;
}

/* Labels of 1, 2, 5 times powers of ten. */
static void time_axis(const struct page *p, const struct scale *s)
{
    static const double steps[] = { 1, 2, 5 };
    for (int e = (int)floor(s->lo); e <= (int)ceil(s->hi); e++)
        for (size_t i = 0; i < COUNT(steps); i++) {
            double us = steps[i] * pow(10, e), l = log10(us);
            if (l < s->lo || l > s->hi)
                continue;
            buf_addf(p->b,
                     "<path class=\"axis\" d=\"M%.1f %.1fH%.1f\"/><text x=\"%.1f\" y=\"%.1f\" "
                     "text-anchor=\"end\">%g us</text>",
                     s->x0, y_of(s, us), s->x1, s->x0 - 6, y_of(s, us) + 4, us);
        }
}

static void turn_axis(const struct page *p, const struct scale *s, double y)
{
    int64_t step = (s->last - s->first) / 10 + 1;
    for (int64_t n = s->first; n <= s->last; n += step)
        buf_addf(p->b, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%lld</text>", x_of(s, n),
                 y, (long long)n);
}

/* The last verdict that has an arm's time; names that would stand on each other move apart. */
static void baselines(const struct page *p, const struct scale *s)
{
    double taken[COUNT(arms)];
    for (size_t k = 0; k < COUNT(arms); k++) {
        double us = 0;
        for (size_t i = 0; i < p->t->n_events; i++)
            if (trace_is(p->t->event[i], "eval"))
                trace_time(json_object_get(p->t->event[i], "verdict"), arms[k], &us);
        taken[k] = -100;
        if (us <= 0)
            continue;
        double y = y_of(s, us), at = y;
        y = fmin(fmax(y, s->y1), s->y0);
        for (size_t m = 0; m < k; m++)
            if (fabs(taken[m] - at) < 11)
                at = taken[m] + 11;
        taken[k] = at;
        buf_addf(p->b,
                 "<path class=\"base\" d=\"M%.1f %.1fH%.1f\"/><text x=\"%.1f\" y=\"%.1f\">%s"
                 "</text>",
                 s->x0, y, s->x1, s->x1 + 4, at + 4, arm_names[k]);
    }
}

static void best_line(const struct page *p, const struct scale *s)
{
    bool begun = false;
    double us;
    for (size_t i = 0; i < p->t->n_events; i++) {
        const json_t *e = p->t->event[i];
        if (!trace_is(e, "eval") || !json_is_true(json_object_get(e, "best")) ||
            !trace_time(json_object_get(e, "verdict"), "candidate", &us))
            continue;
        double x = x_of(s, trace_int(e, "turn", s->first));
        buf_addf(p->b, begun ? "H%.1fV%.1f" : "<path class=\"bestline\" d=\"M%.1f %.1f", x,
                 y_of(s, us));
        begun = true;
    }
    if (begun)
        buf_addf(p->b, "H%.1f\"/>", s->x1);
}

static void points(const struct page *p, const struct scale *s)
{
    for (size_t i = 0; i < p->t->n_events; i++) {
        const json_t *e = p->t->event[i], *v = json_object_get(e, "verdict");
        struct str status = trace_text(v, "status");
        int64_t turn = trace_int(e, "turn", s->first);
        double us, x = x_of(s, turn);
        bool timed = trace_time(v, "candidate", &us);
        if (!trace_is(e, "eval") || (!timed && str_eq(status, S("pass"))))
            continue;
        buf_addf(p->b, "<g data-turn=\"%lld\"><title>turn %lld: ", (long long)turn,
                 (long long)turn);
        page_text(p, status);
        if (timed)
            buf_addf(p->b, " %.2f us</title><circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>",
                     us, json_is_true(json_object_get(e, "best")) ? "dotbest" : "dot", x,
                     y_of(s, us));
        else
            buf_addf(p->b, "</title><path class=\"fail\" d=\"M%.1f %.1fl8 8m0 -8l-8 8\"/>", x - 4,
                     s->y0 + 2);
        buf_addz(p->b, "</g>");
    }
}

static void times(const struct page *p, struct scale *s)
{
    s->y0 = TIMES_HEIGHT - FLOOR - 12;
    s->y1 = TOP;
    buf_addf(p->b,
             "<figure><svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"times over turns\">",
             WIDTH, TIMES_HEIGHT);
    time_axis(p, s);
    turn_axis(p, s, TIMES_HEIGHT - 4);
    baselines(p, s);
    best_line(p, s);
    points(p, s);
    buf_addz(p->b,
             "</svg><figcaption>Time of a call by the turn in which it was measured; the line "
             "is the best so far, crosses are candidates that did not pass.</figcaption>"
             "</figure>\n");
}

static void contexts(const struct page *p, struct scale *s)
{
    s->y0 = CONTEXT_HEIGHT - FLOOR;
    s->y1 = TOP;
    double bar = fmin(14, 0.7 * (s->x1 - s->x0) / ((double)(s->last - s->first) + 1)), percent;
    buf_addf(p->b,
             "<figure><svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"context\"><path "
             "class=\"axis\" d=\"M%.1f %.1fH%.1fM%.1f %.1fH%.1f\"/><text x=\"%.1f\" y=\"%.1f\" "
             "text-anchor=\"end\">100%%</text>",
             WIDTH, CONTEXT_HEIGHT, s->x0, s->y0, s->x1, s->x0, s->y1, s->x1, s->x0 - 6, s->y1 + 4);
    for (size_t i = 0; i < p->t->n_turns; i++) {
        const struct trace_turn *turn = &p->t->turn[i];
        if (!turn->numbered || !page_context(p->t, turn, &percent))
            continue;
        double x = x_of(s, turn->turn), h = fmin(percent, 100) / 100 * (s->y0 - s->y1);
        buf_addf(p->b,
                 "<rect class=\"bar\" data-turn=\"%lld\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                 "height=\"%.1f\"><title>turn %lld: %.0f%%</title></rect>",
                 (long long)turn->turn, x - bar / 2, s->y0 - h, bar, h, (long long)turn->turn,
                 percent);
    }
    for (size_t i = 0; i < p->t->n_events; i++)
        if (trace_is(p->t->event[i], "context"))
            buf_addf(p->b, "<path class=\"cut\" d=\"M%.1f %.1fV%.1f\"/>",
                     x_of(s, trace_int(p->t->event[i], "turn", s->first)) + bar, s->y1, s->y0);
    turn_axis(p, s, CONTEXT_HEIGHT - 6);
    buf_addz(p->b, "</svg><figcaption>How full the model's window was; dashed: it was shortened."
                   "</figcaption></figure>\n");
}

void page_plots(const struct page *p)
{
    struct scale s = { .x0 = LEFT, .x1 = WIDTH - RIGHT };
    if (!turns_span(p->t, &s))
        return;
    if (times_span(p->t, &s))
        times(p, &s);
    contexts(p, &s);
}
