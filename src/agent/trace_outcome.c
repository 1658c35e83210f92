/* What came of an episode: its best, its reward, its totals. */
#include <math.h>

#include "agent/trace.h"

bool trace_time(const json_t *verdict, const char *arm, double *ret)
{
    const json_t *j = json_object_get(json_object_get(verdict, "time_us"), arm);
    double us;
    if (!trace_real(j, "median", &us) || !(us > 0) || !isfinite(us))
        return false;
    *ret = us;
    return true;
}

const json_t *trace_best(const struct trace *t)
{
    const json_t *end = json_object_get(t->finished, "best"), *v = json_object_get(end, "verdict");
    if (json_is_object(v))
        return v;
    v = json_object_get(t->best_eval, "verdict");
    return json_is_object(v) && (t->finished == NULL || json_is_object(end)) ? v : NULL;
}

struct str trace_status(const struct trace *t)
{
    struct str s = trace_text(t->finished, "status");
    return s.len > 0 ? s : S("unfinished");
}

const json_t *trace_totals(const struct trace *t)
{
    const json_t *j = json_object_get(t->finished, "totals");
    for (size_t i = t->n_turns; i > 0 && !json_is_object(j); i--)
        j = json_object_get(t->turn[i - 1].end, "totals");
    return json_is_object(j) ? j : NULL;
}

static bool one_of(struct str s, const char *const *names)
{
    for (; *names != NULL; names++)
        if (str_eq(s, str_from(*names)))
            return true;
    return false;
}

struct trace_outcome trace_outcome(const struct trace *t)
{
    static const char *const budgets[] = { "turns",  "tokens",  "cost",       "seconds",
                                           "window", "stopped", "unfinished", NULL };
    static const char *const faults[] = { "endpoint", "error", "stopped", "unfinished", NULL };
    const json_t *best = trace_best(t), *reward = json_object_get(best, "reward");
    struct str status = trace_text(best, "status");
    struct trace_outcome o = { .passed =
                                   str_eq(status, S("pass")) || str_eq(status, S("undecided")),
                               .truncated = one_of(trace_status(t), budgets),
                               .valid = !one_of(trace_status(t), faults),
                               .milestone = -1 };
    if (!o.passed)
        return o;
    int64_t milestone = trace_int(reward, "milestone", 1);
    o.milestone = milestone >= -1 && milestone <= 3 ? (int)milestone : 1;
    trace_real(reward, "speedup", &o.speedup);
    return o;
}

static void ratio_set(json_t *to, const json_t *best, const char *name)
{
    double median;
    bool known =
        trace_real(json_object_get(json_object_get(best, "speedup"), name), "median", &median);
    json_object_set_new(to, name, known ? json_real(median) : json_null());
}

json_t *trace_reward(const struct trace *t)
{
    struct trace_outcome o = trace_outcome(t);
    const json_t *best = trace_best(t);
    double us;
    json_t *j = json_pack("{s:i, s:f, s:b}", "milestone", o.milestone, "speedup", o.speedup,
                          "passed", o.passed);
    ratio_set(j, best, "vs_eager");
    ratio_set(j, best, "vs_compile");
    ratio_set(j, best, "vs_best");
    json_object_set_new(j, "time_us",
                        trace_time(best, "candidate", &us) ? json_real(us) : json_null());
    return j;
}

/* name -> {"n", "failed"} */
static json_t *calls_json(const struct trace *t)
{
    json_t *all = json_object();
    for (size_t i = 0; i < t->n_events; i++) {
        const char *name = json_string_value(json_object_get(t->event[i], "name"));
        if (!trace_is(t->event[i], "tool_end") || name == NULL)
            continue;
        json_t *row = json_object_get(all, name);
        if (row == NULL) {
            row = json_pack("{s:i, s:i}", "n", 0, "failed", 0);
            json_object_set_new(all, name, row);
        }
        bool failed = json_is_true(json_object_get(t->event[i], "failed"));
        json_object_set_new(row, "n", json_integer(trace_int(row, "n", 0) + 1));
        json_object_set_new(row, "failed", json_integer(trace_int(row, "failed", 0) + failed));
    }
    return all;
}

static json_t *evals_json(const struct trace *t)
{
    json_t *list = json_array();
    for (size_t i = 0; i < t->n_events; i++) {
        const json_t *e = t->event[i], *v = json_object_get(e, "verdict");
        double us;
        if (!trace_is(e, "eval"))
            continue;
        json_t *row = json_object();
        json_object_set(row, "turn", json_object_get(e, "turn"));
        json_object_set(row, "step", json_object_get(e, "step"));
        json_object_set(row, "status", json_object_get(v, "status"));
        json_object_set_new(row, "time_us",
                            trace_time(v, "candidate", &us) ? json_real(us) : json_null());
        json_object_set_new(row, "best", json_boolean(json_is_true(json_object_get(e, "best"))));
        json_array_append_new(list, row);
    }
    return list;
}

static size_t count(const struct trace *t, const char *name)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n_events; i++)
        n += trace_is(t->event[i], name);
    return n;
}

static void copy(json_t *to, const char *as, const json_t *from, const char *key)
{
    json_t *j = json_object_get(from, key);
    json_object_set_new(to, as, j ? json_incref(j) : json_null());
}

json_t *trace_summary(const struct trace *t)
{
    struct trace_outcome o = trace_outcome(t);
    struct str status = trace_status(t);
    json_t *j = json_object(), *totals = (json_t *)(uintptr_t)trace_totals(t);
    size_t turns = 0;
    for (size_t i = 0; i < t->n_turns; i++)
        turns += t->turn[i].response != NULL;
    copy(j, "episode", t->start, "episode");
    copy(j, "attempt", t->start, "attempt");
    copy(j, "task", t->start, "task");
    copy(j, "target", t->start, "target");
    copy(j, "model", json_object_get(t->start, "endpoint"), "model");
    json_object_set_new(j, "status", json_stringn(status.ptr, status.len));
    copy(j, "reason", t->finished, "reason");
    json_object_set_new(j, "turns", json_integer((json_int_t)turns));
    json_object_set_new(j, "messages", json_integer((json_int_t)t->n_messages));
    json_object_set_new(j, "dropped_events", json_integer((json_int_t)t->n_dropped));
    json_object_set_new(j, "torn", json_boolean(t->torn));
    json_object_set_new(j, "passed", json_boolean(o.passed));
    json_object_set_new(j, "truncated", json_boolean(o.truncated));
    json_object_set_new(j, "valid", json_boolean(o.valid));
    json_object_set_new(j, "reward", trace_reward(t));
    json_object_set_new(j, "best_turn",
                        t->best_eval ? json_integer(trace_int(t->best_eval, "turn", -1))
                                     : json_null());
    json_object_set_new(j, "totals", totals ? json_incref(totals) : json_null());
    json_object_set_new(j, "evals", evals_json(t));
    json_object_set_new(j, "calls", calls_json(t));
    json_object_set_new(j, "contexts", json_integer((json_int_t)count(t, "context")));
    json_object_set_new(j, "resumed", json_integer((json_int_t)count(t, "resumed")));
    json_object_set_new(j, "errors", json_integer((json_int_t)count(t, "error")));
    return j;
}
