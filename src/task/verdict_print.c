#include <inttypes.h>

#include "task/verdict.h"

#define FAILED_CHECKS_SHOWN 4

static const char *unit_of(double us, double *scaled)
{
    if (us >= 1e6) {
        *scaled = us / 1e6;
        return "s ";
    }
    if (us >= 1e3) {
        *scaled = us / 1e3;
        return "ms";
    }
    *scaled = us;
    return "us";
}

static void arm_print(const char *role, const struct arm_time *t, const struct ratio *r,
                      const char *name, struct buf *b)
{
    double x;
    if (t->windows == 0) {
        buf_addf(b, "  %-11s not measured\n", role);
        return;
    }
    const char *unit = unit_of(t->median, &x);
    double scale = x / (t->median > 0 ? t->median : 1);
    buf_addf(b, "  %-11s %8.3f %s  [%.3f, %.3f]", role, x, unit, t->lo * scale, t->hi * scale);
    if (r != NULL && r->median > 0)
        buf_addf(b, "   %.2fx [%.2f, %.2f]", r->median, r->lo, r->hi);
    if (name[0] != '\0')
        buf_addf(b, "   %s", name);
    if (t->void_windows > 0)
        buf_addf(b, "   (%d of %d windows void)", t->void_windows, t->windows + t->void_windows);
    buf_addz(b, "\n");
}

static void times_print(const struct verdict *v, struct buf *b)
{
    if (v->time_us[ARM_CANDIDATE].windows == 0)
        return;
    arm_print("candidate", &v->time_us[ARM_CANDIDATE], NULL, "", b);
    arm_print("eager", &v->time_us[ARM_EAGER], &v->vs_eager, "", b);
    arm_print("compile", &v->time_us[ARM_COMPILE], &v->vs_compile, "", b);
    arm_print("best", &v->time_us[ARM_BEST], &v->vs_best, v->best_name, b);
    if (v->kernels_us[ARM_CANDIDATE] > 0)
        buf_addf(b, "  %-11s %8.3f us  eager %.3f, compile %.3f: sums of kernel times, unpaid\n",
                 "kernels", v->kernels_us[ARM_CANDIDATE], v->kernels_us[ARM_EAGER],
                 v->kernels_us[ARM_COMPILE]);
    if (v->floor_us > 0) {
        double x;
        const char *unit = unit_of(v->floor_us, &x);
        buf_addf(b, "  %-11s %8.3f %s  ", "floor", x, unit);
        if (v->floor_share > 1)
            buf_addz(b, "beaten: less work than the model counts");
        else
            buf_addf(b, "%.0f%% of it reached", 100 * v->floor_share);
        buf_addf(b, " (a model: %.3g MB, %.3g GFLOP)\n", (double)v->floor_bytes / 1e6,
                 v->floor_flops / 1e9);
    }
    if (v->setup_ms > 0 || v->keep_bytes > 0)
        buf_addf(b, "  %-11s %8.3f ms  untimed; keeps %" PRId64 " bytes\n", "setup", v->setup_ms,
                 v->keep_bytes);
}

static void checks_print(const struct verdict *v, struct buf *b)
{
    int failed = 0;
    for (int i = 0; i < v->n_checks; i++) {
        const struct check *c = &v->check[i];
        if (c->misses == 0)
            continue;
        if (failed++ < FAILED_CHECKS_SHOWN)
            buf_addf(b,
                     "  %-11s %s on '%s' inputs: %" PRId64 " of %" PRId64
                     " elements off; first at [%" PRId64 "]: got %.9g, want %.9g; worst %.3g\n",
                     "failed", c->output, c->family, c->misses, c->n, c->first, c->got, c->want,
                     c->max_err);
    }
    if (failed > FAILED_CHECKS_SHOWN)
        buf_addf(b, "  %-11s and %d more of %d checks\n", "", failed - FAILED_CHECKS_SHOWN,
                 v->n_checks);
}

/* Parts that are empty leave no comma behind, and no line when all are. */
static void words_print(const char *role, const char *const *word, size_t n, struct buf *b)
{
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        if (word[i][0] == '\0')
            continue;
        if (any)
            buf_addf(b, ", %s", word[i]);
        else
            buf_addf(b, "  %-11s %s", role, word[i]);
        any = true;
    }
    buf_addz(b, any ? "\n" : "");
}

/* Right but never timed has no reward to show. */
static void reward_print(const struct verdict *v, struct buf *b)
{
    if (verdict_right(v) && v->time_us[ARM_CANDIDATE].windows == 0)
        return;
    buf_addf(b, "  %-11s %d against %s", "reward", v->reward_milestone,
             v->against == AGAINST_BEST ? "best-of-PyTorch" : "eager and compile");
    if (v->reward_speedup > 0)
        buf_addf(b, "   (raw speed-up over compile %.2f)", v->reward_speedup);
    buf_addz(b, "\n");
}

static void build_log_print(const char *log, struct buf *b)
{
    struct str line = { 0 }, rest = str_from(log);
    while (str_cut(&rest, '\n', &line))
        buf_addf(b, "  | %.*s\n", STR_FMT(line));
}

void verdict_print(const struct verdict *v, struct buf *b)
{
    buf_addf(b, "%s%s%s\n", verdict_status_name(v->status), v->reason[0] ? ": " : "", v->reason);
    build_log_print(v->build_log, b);
    buf_addf(b, "  %-11s %s, %s%s candidate %.8s by %s\n", "task", v->task_name,
             target_name(v->target), v->contract == CONTRACT_TORCH ? " torch" : "",
             v->candidate_hash, v->author[0] ? v->author : "unknown");
    checks_print(v, b);
    if (v->n_checks > 0 && v->precision == PREC_NONE)
        buf_addf(b, "  %-11s none: %d checks, tolerance %.2g (%s)\n", "precision", v->n_checks,
                 v->tol_used, preset_name(v->preset));
    else if (v->n_checks > 0)
        buf_addf(b, "  %-11s %s, relative error %.2g (%s, tolerance %.2g, %d checks)\n",
                 "precision", precision_name(v->precision), v->rel_l2, preset_name(v->preset),
                 v->tol_used, v->n_checks);
    times_print(v, b);
    reward_print(v, b);
    for (int i = 0; i < v->n_notes; i++)
        buf_addf(b, "  %-11s %s\n", "note", v->note[i]);
    const char *device[] = { v->device_name, v->driver, v->clocks, v->throttle };
    const char *versions[] = { v->torch_version, v->cuda_version, v->compiler_version };
    words_print("device", device, COUNT(device), b);
    words_print("versions", versions, COUNT(versions), b);
    buf_addf(b, "  %-11s rung %d, limits by %s\n", "box", v->box_rung,
             v->box_limits_by[0] ? v->box_limits_by : "nothing");
    buf_addf(
        b, "  %-11s build %" PRId64 ", start %" PRId64 ", check %" PRId64 ", time %" PRId64 " ms\n",
        "cost", v->cost_build_ms, v->cost_start_ms, v->cost_check_ms, v->cost_time_ms);
}
