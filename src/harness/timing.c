/* How fast: a quick look against the stored baselines, then, near a border, a paired one.
 *
 * Paired: candidate and baseline windows in alternating order, in fresh runner processes, because
 * what differs between processes (addresses, clocks) is constant inside one.
 */
#include <stdio.h>

#include "harness/exam_int.h"
#include "sys/clock.h"

#define QUICK_CUDA 11
#define QUICK_CPU 12
#define WARM_CUDA 7 /* of one call each: what a call takes alone */
#define WARM_CPU 3
#define ROUNDS 16 /* of the paired look, in each process */
#define STALE_LIMIT 2
#define VOID_LIMIT 30
#define ROUNDS_LEAST 6
#define PROCESSES 2      /* of the paired look */
#define PROCESSES_CPU 12 /* at most, while the border is not clear: its windows vary more */
#define BUDGET_S 12.0
#define BUDGET_CPU_S 30.0
#define DRIFT_CUDA 1.5      /* stored times are of another minute: eager's launches took 1.4 x */
#define DRIFT_CPU 4.0       /* a shared machine was 2.4 x as fast the minute after */
#define CPU_FLOOR_US 5000.0 /* exam.md 4: below, a cpu tier is undecided */

struct look {
    struct exam *x;
    const struct rehearsal *played; /* NULL: a candidate in a runner */
    enum contract contract;
    struct verdict *v;
    struct verify_result *result;
    enum window_look some;
    int calls, stale, voids;
    double call_us;
    int64_t until_ms;
};

static bool failed(const struct look *l)
{
    return !l->result->pass;
}

static enum err_code any_window(struct look *l, struct runner *r, struct window *w, struct err *err)
{
    if (l->played == NULL)
        return window_candidate(l->x, r, l->calls, l->call_us, l->some, w, err);
    if (window_arm(l->x, l->played->arm, l->calls, w, err) != OK)
        return err->code;
    w->reply.msg.status = CA_DONE;
    w->us *= l->played->scale;
    return OK;
}

/* One candidate window; void ones are repeated. A failure is in l->result. */
static enum err_code candidate_window(struct look *l, struct runner *r, struct samples *s,
                                      struct err *err)
{
    for (int tries = 0; tries < VOID_LIMIT; tries++) {
        struct window w;
        if (any_window(l, r, &w, err) != OK)
            return err->code;
        l->result->reply = w.reply;
        l->result->step = STEP_GO;
        if (reply_failed(&w.reply) || w.wrong) {
            l->result->pass = false;
            if (w.wrong)
                snprintf(l->v->reason, sizeof l->v->reason,
                         "a timed call gave a wrong answer: right when it is verified, wrong when "
                         "it is timed");
            return OK;
        }
        l->stale += w.stale > 0;
        if (l->stale >= STALE_LIMIT) {
            l->result->pass = false;
            l->v->status = VERDICT_TAMPERED;
            snprintf(l->v->reason, sizeof l->v->reason,
                     "outputs were not there when the candidate said that it was done, and came "
                     "later");
            return OK;
        }
        if (w.is_void || w.stale > 0) {
            l->voids++;
            s->voids++;
            continue;
        }
        l->v->span_us = w.span_us;
        samples_add(s, w.us);
        return OK;
    }
    return err_raise(err, ERR_CUDA, "%d windows in a row were void: somebody else uses the device",
                     VOID_LIMIT);
}

/* Estimate the call's time and with it the calls of a window. */
static enum err_code warm(struct look *l, struct runner *r, struct err *err)
{
    struct samples s = { 0 };
    l->calls = 1;
    int windows = l->x->cfg.target == TARGET_CUDA ? WARM_CUDA : WARM_CPU;
    for (int i = 0; i < windows && !failed(l); i++)
        if (candidate_window(l, r, &s, err) != OK)
            return err->code;
    l->call_us = stats_time(&s).median;
    l->v->alone_us = l->call_us;
    l->calls = window_calls(l->x, l->call_us);
    return OK;
}

static enum err_code quick(struct look *l, struct runner *r, struct samples *s, struct err *err)
{
    int want = l->x->cfg.target == TARGET_CUDA ? QUICK_CUDA : QUICK_CPU;
    for (int i = 0; i < want && !failed(l) && (i < 7 || clock_ms() < l->until_ms); i++)
        if (candidate_window(l, r, s, err) != OK)
            return err->code;
    return OK;
}

/* All sets of a window are there when it opens: who knows their places could do the work of all
 * calls in one launch that fills the device, or in one pass over the weights. Where a call alone
 * takes far longer than one among many, alone is what counts. */
static enum err_code alone(struct look *l, struct runner *r, struct samples *mine, struct err *err)
{
    struct samples s = { 0 };
    double together = stats_time(mine).median;
    bool cuda = l->x->cfg.target == TARGET_CUDA;
    int calls = l->calls, windows = cuda ? QUICK_CUDA : QUICK_CPU;
    double first = l->x->first_us[l->contract];
    if (calls == 1 || !stats_help(l->call_us, together, first))
        return OK;
    l->calls = 1;
    for (int i = 0; i < windows && !failed(l); i++)
        if (candidate_window(l, r, &s, err) != OK)
            return err->code;
    double us = stats_time(&s).median;
    if (failed(l) || !stats_help(us, together, first)) {
        l->calls = calls;
        return OK;
    }
    verdict_note(l->v,
                 "a call alone takes %.1f us, among %d %.1f: they help each other; alone counts",
                 us, calls, together);
    *mine = s;
    return OK;
}

/* The arms that the paired look is about: those that pay, and best. */
struct rival {
    struct pytorch_arm *arm;
    struct samples base, mine;
    struct ratio *ret;
};

/* The candidate's runner is stopped meanwhile: its threads could slow PyTorch down. */
static enum err_code rival_window(struct look *l, struct runner *r, struct rival *v,
                                  struct err *err)
{
    if (r != NULL && !runner_stop(r, &l->result->reply)) {
        l->result->pass = false;
        l->result->step = STEP_GO;
        return OK;
    }
    for (int tries = 0; tries < VOID_LIMIT; tries++) {
        struct window w;
        int calls = window_calls(l->x, v->arm->time.median);
        if (window_arm(l->x, v->arm->name, calls, &w, err) != OK)
            return err->code;
        if (w.is_void)
            continue;
        samples_add(&v->base, w.us);
        if (r != NULL)
            runner_resume(r);
        return OK;
    }
    return err_raise(err, ERR_CUDA, "%d windows in a row were void", VOID_LIMIT);
}

static enum err_code rounds(struct look *l, struct runner *r, struct rival *rival, int n_rivals,
                            struct samples *all, struct err *err)
{
    for (int i = 0; i < ROUNDS && !failed(l) && (i < ROUNDS_LEAST || clock_ms() < l->until_ms);
         i++) {
        struct samples one = { 0 };
        bool first = i % 2 == 0; /* the order alternates: the first of a pair is slower */
        if (first && candidate_window(l, r, &one, err) != OK)
            return err->code;
        for (int k = 0; k < n_rivals && !failed(l); k++)
            if (rival_window(l, r, &rival[first ? k : n_rivals - 1 - k], err) != OK)
                return err->code;
        if (!first && !failed(l) && candidate_window(l, r, &one, err) != OK)
            return err->code;
        if (one.n == 0)
            continue;
        samples_add(all, one.v[0]);
        for (int k = 0; k < n_rivals; k++)
            samples_add(&rival[k].mine, one.v[0]);
    }
    return OK;
}

static int choose_rivals(struct exam *x, struct verdict *v, struct rival rival[3])
{
    struct pytorch_arm *best = &x->arm[baseline_best(x) - x->arm];
    struct {
        struct pytorch_arm *arm;
        struct ratio *r;
    } all[] = { { &x->arm[0], &v->vs_eager },
                { &x->arm[1], &v->vs_compile },
                { best, &v->vs_best } };
    double drift = x->cfg.target == TARGET_CUDA ? DRIFT_CUDA : DRIFT_CPU;
    int n = 0;
    for (size_t i = 0; i < COUNT(all); i++) {
        bool same = i == 2 && (best == &x->arm[0] || best == &x->arm[1]);
        bool due = stats_touches(all[i].r, MILESTONE_RATIO, drift);
        if (all[i].arm->time.windows > 0 && !same && due)
            rival[n++] = (struct rival){ .arm = all[i].arm, .ret = all[i].r };
    }
    return n;
}

/* A fresh process with the candidate loaded; none where an arm is played. */
static enum err_code fresh_runner(struct look *l, struct program p, struct runner **ret,
                                  struct err *err)
{
    double ms;
    int64_t keep;
    *ret = NULL;
    if (l->played != NULL)
        return OK;
    if (exam_runner(l->x, p.contract, ret, err) != OK ||
        candidate_load(*ret, p.so_path, &l->result->step, &l->result->reply, &ms, &keep, err) != OK)
        return err->code;
    l->result->pass = l->result->pass && !reply_failed(&l->result->reply);
    return OK;
}

static bool seen_enough(const struct look *l, const struct rival *rival, int n_rivals,
                        int processes)
{
    if (processes % 2 != 0 || processes < PROCESSES)
        return false;
    if (l->x->cfg.target == TARGET_CUDA)
        return true;
    bool clear = true;
    for (int k = 0; k < n_rivals; k++)
        clear = clear && stats_clear(&rival[k].base, &rival[k].mine, MILESTONE_RATIO);
    return clear || processes >= PROCESSES_CPU || clock_ms() >= l->until_ms;
}

static enum err_code paired(struct look *l, struct program p, struct rival *rival, int n_rivals,
                            struct samples *all, int *ret_processes, struct err *err)
{
    struct exam *x = l->x;
    for (int k = 0; k < n_rivals; k++) {
        bool ready = false;
        if (baseline_prepare(x, rival[k].arm, &ready, err) != OK)
            return err->code;
        if (!ready)
            return err_raise(err, ERR_WORKER, "%s ran before and does not now",
                             rival[k].arm->shown);
    }
    *ret_processes = 0;
    while (!failed(l) && !seen_enough(l, rival, n_rivals, *ret_processes)) {
        ++*ret_processes;
        struct runner *r = NULL;
        enum err_code code = fresh_runner(l, p, &r, err);
        struct samples warmup = { 0 };
        if (code == OK && !failed(l))
            code = candidate_window(l, r, &warmup, err);
        if (code == OK && !failed(l))
            code = rounds(l, r, rival, n_rivals, all, err);
        runner_destroy(r);
        if (code != OK)
            return code;
    }
    for (int k = 0; k < n_rivals; k++) {
        struct arm_time beside = stats_time(&rival[k].base);
        double quiet = rival[k].arm->time.median;
        *rival[k].ret = stats_paired(&rival[k].base, &rival[k].mine);
        if (x->cfg.target == TARGET_CUDA && stats_quiet(rival[k].ret, beside.median, quiet))
            verdict_note(l->v,
                         "%s took %.1f us beside the candidate, %.1f alone: the latter counts",
                         rival[k].arm->shown, beside.median, quiet);
    }
    return OK;
}

static void ratios(struct exam *x, struct verdict *v, const struct arm_time *mine)
{
    const struct pytorch_arm *best = baseline_best(x);
    v->time_us[ARM_CANDIDATE] = *mine;
    v->time_us[ARM_EAGER] = x->arm[0].time;
    v->time_us[ARM_COMPILE] = x->arm[1].time;
    v->time_us[ARM_BEST] = best->time;
    snprintf(v->best_name, sizeof v->best_name, "%s", best->shown);
    v->vs_eager = stats_apart(&x->arm[0].time, mine);
    v->vs_compile = stats_apart(&x->arm[1].time, mine);
    v->vs_best = stats_apart(&best->time, mine);
}

/* Compulsory bytes only: outputs that no cache holds. Below it, somebody else did the work. */
static bool below_floor(const struct exam *x, double us)
{
    double least = (double)x->out_bytes / x->bandwidth * 1e6 * 0.85;
    return x->cfg.target == TARGET_CUDA && x->out_bytes > (int64_t)256 << 20 && us < least;
}

/* The arms' times as they were beside the candidate. */
static void beside_times(struct verdict *v, const struct rival *rival, int n)
{
    for (int k = 0; k < n; k++) {
        const struct ratio *r = rival[k].ret;
        enum arm arm = r == &v->vs_eager ? ARM_EAGER : r == &v->vs_compile ? ARM_COMPILE : ARM_BEST;
        v->time_us[arm] = stats_time(&rival[k].base);
    }
}

static void best_is(struct verdict *v, enum arm arm, const struct ratio *r, const char *name)
{
    v->vs_best = *r;
    v->time_us[ARM_BEST] = v->time_us[arm];
    snprintf(v->best_name, sizeof v->best_name, "%s", name);
}

/* After the second look: best is what it was, by its new ratio; on a cpu another way may have come
 * out faster. */
static void best_again(const struct exam *x, struct verdict *v)
{
    const struct pytorch_arm *best = baseline_best(x);
    const struct {
        enum arm arm;
        const struct ratio *r;
    } way[] = { { ARM_EAGER, &v->vs_eager }, { ARM_COMPILE, &v->vs_compile } };
    for (size_t i = 0; i < COUNT(way); i++)
        if (best == &x->arm[i])
            best_is(v, way[i].arm, way[i].r, best->shown);
    for (size_t i = 0; i < COUNT(way); i++)
        if (x->cfg.target == TARGET_CPU && way[i].r->median > 0 &&
            way[i].r->median < v->vs_best.median)
            best_is(v, way[i].arm, way[i].r, x->arm[i].shown);
}

/* `mine` becomes the candidate's windows that count, v's ratios and times those that do. */
static enum err_code second_look(struct look *l, struct program p, struct rival *rival, int n,
                                 struct samples *mine, struct err *err)
{
    struct exam *x = l->x;
    struct verdict *v = l->v;
    struct samples again = { 0 };
    int processes = 0;
    if (paired(l, p, rival, n, &again, &processes, err) != OK || failed(l))
        return err->code;
    verdict_note(v, "decided by %d paired windows in %d more processes", again.n, processes);
    if (x->cfg.target == TARGET_CPU) { /* whose speed drifts: only what ran side by side counts */
        mine->n = 0;
        beside_times(v, rival, n);
    }
    for (int i = 0; i < again.n; i++)
        samples_add(mine, again.v[i]);
    best_again(x, v);
    return OK;
}

static int64_t budget_ms(const struct exam *x, const struct grade_options *opt)
{
    double usual = x->cfg.target == TARGET_CUDA ? BUDGET_S : BUDGET_CPU_S;
    return (int64_t)((opt->seconds > 0 ? opt->seconds : usual) * 1e3);
}

/* Is the task too short for this clock? Then no second look can help. */
static bool too_short(const struct exam *x)
{
    return x->cfg.target == TARGET_CPU && x->arm[0].time.median < CPU_FLOOR_US;
}

enum err_code timing_candidate(struct exam *x, const struct timed *what,
                               const struct grade_options *opt, struct verdict *v,
                               struct verify_result *ret, struct err *err)
{
    struct runner *first = what->runner;
    struct samples mine = { 0 };
    struct rival rival[3];
    struct look l = { .x = x,
                      .played = what->played,
                      .contract = what->program.contract,
                      .v = v,
                      .result = ret,
                      .some = opt->quick ? LOOK_ONE : LOOK_TWO,
                      .until_ms = clock_ms() + budget_ms(x, opt) };
    ret->pass = true;
    if (warm(&l, first, err) != OK || failed(&l) || quick(&l, first, &mine, err) != OK ||
        failed(&l) || alone(&l, first, &mine, err) != OK || failed(&l))
        return err->code;
    struct arm_time t = stats_time(&mine);
    ratios(x, v, &t);
    int n = opt->quick || too_short(x) ? 0 : choose_rivals(x, v, rival);
    if (n > 0 && (second_look(&l, what->program, rival, n, &mine, err) != OK || failed(&l)))
        return err->code;
    t = stats_time(&mine);
    v->time_us[ARM_CANDIDATE] = t;
    v->time_us[ARM_CANDIDATE].void_windows = l.voids;
    if (below_floor(x, t.median)) {
        ret->pass = false;
        v->status = VERDICT_TAMPERED;
        snprintf(v->reason, sizeof v->reason,
                 "%.1f us is less than writing the outputs takes on this device", t.median);
    }
    if (ret->pass && too_short(x)) {
        v->status = VERDICT_UNDECIDED;
        snprintf(
            v->reason, sizeof v->reason,
            "right; eager takes %.2f ms, and under 5 ms a cpu's clock cannot tell who is faster",
            x->arm[0].time.median / 1e3);
    }
    return OK;
}
