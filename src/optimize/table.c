#include "optimize/optimize.h"

bool optimize_beats(const struct verdict *v, enum against against)
{
    if (v->status != VERDICT_PASS)
        return false;
    if (against == AGAINST_PAPER)
        return reward_milestone(v, AGAINST_PAPER) == 3;
    return v->vs_best.lo > MILESTONE_RATIO; /* best-of-PyTorch is no slower than the others */
}

void optimize_result_fini(struct optimize_result *r)
{
    json_decref(r->baselines);
    json_decref(r->soundness);
    r->baselines = r->soundness = NULL;
}

/* One PyTorch arm out of exam_baselines(). */
static struct arm_time arm_of(const json_t *baselines, const char *arm)
{
    const json_t *j = json_object_get(baselines, arm);
    return (struct arm_time){ .median = json_number_value(json_object_get(j, "median")),
                              .lo = json_number_value(json_object_get(j, "lo")),
                              .hi = json_number_value(json_object_get(j, "hi")),
                              .windows = (int)json_integer_value(json_object_get(j, "windows")) };
}

struct row {
    const char *name;
    struct arm_time time;
    const struct ratio *ratio; /* NULL: the candidate itself, or no candidate */
    const char *precision;
    int milestone;    /* 0: none is given */
    const char *what; /* the last column */
};

static double scale_of(double us, const char **ret_unit)
{
    *ret_unit = us >= 1e6 ? "s " : us >= 1e3 ? "ms" : "us";
    return us >= 1e6 ? 1e-6 : us >= 1e3 ? 1e-3 : 1;
}

static void row_print(const struct row *row, double floor_us, struct buf *b)
{
    const char *unit;
    double k = scale_of(row->time.median, &unit);
    if (!(row->time.median > 0)) {
        buf_addf(b, "%-21s %12s  not measured\n", row->name, "-");
        return;
    }
    own_arena tmp = { 0 };
    const char *interval = arena_fmt(&tmp, "[%.3f, %.3f]", row->time.lo * k, row->time.hi * k);
    const char *ratio = "-", *floor = "-", *milestone = "-";
    if (row->ratio != NULL && row->ratio->median > 0)
        ratio = arena_fmt(&tmp, "%.2fx [%.2f, %.2f]", row->ratio->median, row->ratio->lo,
                          row->ratio->hi);
    if (floor_us > 0)
        floor = arena_fmt(&tmp, "%.0f%%", 100 * floor_us / row->time.median);
    if (row->milestone != 0)
        milestone = arena_fmt(&tmp, "%d", row->milestone);
    buf_addf(b, "%-21s %9.3f %s  %-20s  %-21s  %-9s  %5s  %-9s%s%s\n", row->name,
             row->time.median * k, unit, interval, ratio, row->precision, floor, milestone,
             row->what[0] ? "  " : "", row->what);
}

static double floor_us_of(const struct optimize_result *r)
{
    if (r->found && r->best.floor_us > 0)
        return r->best.floor_us;
    return json_number_value(json_object_get(json_object_get(r->soundness, "floor"), "us"));
}

/* The verdict measured its baselines beside the candidate: those count where there is one. */
static struct arm_time time_of(const struct optimize_result *r, enum arm arm, const char *name)
{
    if (r->found && r->best.time_us[arm].windows > 0)
        return r->best.time_us[arm];
    return arm_of(r->baselines, name);
}

static const char *best_name_of(const struct optimize_result *r)
{
    const char *name =
        json_string_value(json_object_get(json_object_get(r->baselines, "best"), "name"));
    if (r->found && r->best.best_name[0] != '\0')
        return r->best.best_name;
    return name ? name : "?";
}

static void rows_print(const struct optimize_result *r, struct buf *b)
{
    own_arena tmp = { 0 };
    const struct verdict *v = &r->best;
    double floor_us = floor_us_of(r);
    const struct row pytorch[] = {
        { "flags", time_of(r, ARM_BEST, "best"), &v->vs_best, "-", 0,
          arena_fmt(&tmp, "best-of-PyTorch: %s", best_name_of(r)) },
        { "torch.compile", time_of(r, ARM_COMPILE, "compile"), &v->vs_compile, "-", 0, "" },
        { "eager", time_of(r, ARM_EAGER, "eager"), &v->vs_eager, "-", 0, "" },
    };
    buf_addf(b, "%-21s %12s  %-20s  %-21s  %-9s  %5s  %-9s\n", "", "time", "95% interval",
             "candidate is faster", "precision", "floor", "milestone");
    if (r->found) {
        const struct row mine = { arena_fmt(&tmp, "%s %.8s", v->author, v->candidate_hash),
                                  v->time_us[ARM_CANDIDATE],
                                  NULL,
                                  precision_name(v->precision),
                                  v->reward_milestone,
                                  "" };
        row_print(&mine, floor_us, b);
    }
    for (size_t i = 0; i < COUNT(pytorch); i++)
        row_print(&pytorch[i], floor_us, b);
}

static const char *gate_name(enum against against)
{
    return against == AGAINST_BEST ? "best-of-PyTorch" : "eager and compile";
}

/* What came out, in a sentence. */
static const char *headline(const struct optimize_result *r)
{
    if (!r->found)
        return "no candidate is verified";
    if (!r->confirmed)
        return "a candidate passed, its full grading is still to come";
    if (r->best.status == VERDICT_UNDECIDED)
        return "verified; eager takes under 5 ms, too short for a cpu's clock to tell who is "
               "faster: a larger input would";
    return r->beats ? "verified and more than 5% faster"
                    : "verified, not faster by 5% on the lower bound";
}

void optimize_print(const struct optimize_config *cfg, const struct optimize_result *r,
                    struct buf *b)
{
    buf_addf(b, "%s, author %s, gate: %s\n%s%s\n\n", cfg->task->name, cfg->author->name,
             gate_name(cfg->exam.against), r->stopped ? "interrupted; " : "", headline(r));
    rows_print(r, b);
    buf_addf(b, "\n%d graded now, %d answered from the log, %d verified in all\n", r->attempts,
             r->reused, r->passed);
    size_t i;
    json_t *line;
    json_array_foreach(json_object_get(r->soundness, "degenerate"), i, line)
    {
        buf_addf(b, "degenerate task: %s\n", json_string_value(line));
    }
    for (int n = 0; r->found && n < r->best.n_notes; n++)
        buf_addf(b, "note: %s\n", r->best.note[n]);
    if (r->found)
        buf_addf(b, "on %s; the candidate is in %s/best\n", r->best.device_name, cfg->out);
    if (r->stopped)
        buf_addz(b, "the same command resumes where this one stopped\n");
}

json_t *optimize_json(const struct optimize_config *cfg, const struct optimize_result *r)
{
    json_t *degenerate = json_object_get(r->soundness, "degenerate");
    json_t *j = json_pack("{s:s, s:s, s:{s:s, s:s}, s:s, s:s, s:s, s:b, s:b, s:b, s:i, s:i, s:i}",
                          "schema", "cuda-agent/optimize/1", "run", r->run, "task", "hash",
                          cfg->task->hash, "name", cfg->task->name, "author", cfg->author->name,
                          "target", target_name(cfg->exam.target), "gate",
                          cfg->exam.against == AGAINST_BEST ? "best" : "paper", "beats", r->beats,
                          "confirmed", r->confirmed, "stopped", r->stopped, "attempts", r->attempts,
                          "reused", r->reused, "passed", r->passed);
    json_object_set_new(j, "traced", json_boolean(r->traced));
    json_object_set_new(j, "summary", json_string(headline(r)));
    json_object_set_new(j, "out", json_string(cfg->out));
    json_object_set_new(j, "degenerate", degenerate ? json_deep_copy(degenerate) : json_array());
    json_object_set_new(j, "baselines", r->baselines ? json_deep_copy(r->baselines) : json_null());
    json_object_set_new(j, "verdict", r->found ? verdict_json(&r->best) : json_null());
    return j;
}
