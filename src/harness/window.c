/* The window: the examiner's clock around k calls on new values. docs/exam.md has the reasons.
 *
 *   the runner is stopped; the worker writes new inputs and poison, flushes the caches;
 *   t0; resume; go; done;
 *   cuda  the worker reads a secret sixteenth of the outputs by a kernel; t1; stop
 *   cpu   stop; t1: a stopped process computes nothing more
 *   settle (what came late, what was never written), and full comparison of calls drawn now
 */
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "core/json.h"
#include "harness/exam_int.h"
#include "sys/clock.h"

#define DRAW_MS 120000
#define ASK_MS 120000
#define OVERHEADS_CUDA 20.0
#define CALLS_US_CPU 4000.0 /* a shorter window would be lost in its own cost */
#define LOOK_UNTOUCHED \
    4 /* calls compared at most because a line of their outputs kept its poison */
#define CALIBRATIONS 11
#define FIRST_US_CUDA 8.0  /* what the first call of a window may take more, honestly */
#define FIRST_US_CPU 200.0 /* threads to wake */
#define TORCH_CALLS 8
#define TORCH_ROOM 1.5 /* Python's first call varies */
#define SECRET_BYTES 4

static unsigned secret(void)
{
    unsigned v = 0;
    if (getrandom(&v, SECRET_BYTES, 0) != SECRET_BYTES)
        abort(); /* a broken promise of the kernel */
    return v;
}

int window_calls(const struct exam *x, double call_us)
{
    double want =
        x->cfg.target == TARGET_CUDA ? OVERHEADS_CUDA * x->overhead_runner_us : CALLS_US_CPU;
    double k = call_us > 0 ? want / call_us : CA_SETS_MAX; /* lost in the window's own cost */
    int calls = k < 1 ? 1 : k > CA_SETS_MAX ? CA_SETS_MAX : (int)(k + 0.999);
    return calls < x->n_sets ? calls : x->n_sets;
}

/* `calls` different sets, starting somewhere else every time: addresses change and recur. */
static json_t *choose_sets(const struct exam *x, int calls, uint16_t set[CA_SETS_MAX])
{
    json_t *sets = json_array();
    unsigned from = secret() % (unsigned)x->n_sets;
    for (int i = 0; i < calls; i++) {
        unsigned s = (from + (unsigned)i) % (unsigned)x->n_sets;
        set[i] = (uint16_t)s;
        json_array_append_new(sets, json_integer(s));
    }
    return sets;
}

static enum err_code draw(struct exam *x, json_t *sets, struct window *w, struct err *err)
{
    own_json answer = NULL;
    json_t *ask = json_pack("{s:O,s:s,s:s,s:b,s:b}", "sets", sets, "family", "own", "weights",
                            "keep", "poison", 1, "flush", 1);
    if (worker_ask(x->worker, "draw", ask, DRAW_MS, NULL, &answer, err) != OK)
        return err->code;
    return json_get_flag(answer, "void", &w->is_void, err);
}

static enum err_code ask_sets(struct exam *x, const char *op, json_t *sets, json_t **ret,
                              struct err *err)
{
    json_t *ask = sets ? json_pack("{s:O}", "sets", sets) : json_object();
    return worker_ask(x->worker, op, ask, ASK_MS, NULL, ret, err);
}

/* *ret_untouched, where it is asked for: sets whose outputs kept poison; who skips a call leaves
 * some. It may be right (where an answer equals its poison): the comparison decides. */
static enum err_code settle(struct exam *x, struct window *w, json_t **ret_untouched,
                            struct err *err)
{
    own_json answer = NULL;
    json_t *untouched = NULL;
    int64_t stale = 0;
    if (ask_sets(x, "settle", NULL, &answer, err) != OK ||
        json_get_int(answer, "stale_blocks", &stale, err) != OK ||
        json_get_list(answer, "untouched", &untouched, err) != OK)
        return err->code;
    w->stale = (int)stale;
    if (ret_untouched != NULL)
        *ret_untouched = json_incref(untouched);
    return OK;
}

/* Compare `some` calls drawn now, and of the untouched sets a few, from a random one on. */
static enum err_code look(struct exam *x, const uint16_t set[], int calls, int some,
                          const json_t *untouched, struct window *w, struct err *err)
{
    own_json answer = NULL;
    own_json sets = json_array();
    bool pass = false;
    size_t kept = json_array_size(untouched), most = kept < LOOK_UNTOUCHED ? kept : LOOK_UNTOUCHED;
    unsigned from = secret();
    for (int i = 0; i < calls && i < some; i++) /* neighbours would be one draw, not two */
        json_array_append_new(sets, json_integer(set[secret() % (unsigned)calls]));
    for (size_t i = 0; i < most; i++)
        json_array_append(sets, json_array_get(untouched, (from + i) % kept));
    if (ask_sets(x, "compare", sets, &answer, err) != OK ||
        json_get_flag(answer, "pass", &pass, err) != OK)
        return err->code;
    w->wrong = !pass;
    return OK;
}

static double per_call(int64_t ns, double overhead_us, int calls)
{
    double us = (double)ns / 1e3 - overhead_us;
    return us > 0 ? us / calls : 0;
}

enum err_code window_arm(struct exam *x, const char *arm, int calls, struct window *ret,
                         struct err *err)
{
    uint16_t set[CA_SETS_MAX];
    own_json sets = choose_sets(x, calls, set);
    own_json ran = NULL;
    own_json sampled = NULL;
    *ret = (struct window){ 0 };
    if (draw(x, sets, ret, err) != OK)
        return err->code;
    int64_t t0 = clock_ns();
    if (worker_ask(x->worker, "run", json_pack("{s:s,s:O}", "arm", arm, "sets", sets), ASK_MS, NULL,
                   &ran, err) != OK)
        return err->code;
    int64_t t1 = clock_ns();
    if (ask_sets(x, "sample", sets, &sampled, err) != OK)
        return err->code;
    if (x->cfg.target == TARGET_CUDA)
        t1 = clock_ns();
    if (settle(x, ret, NULL, err) != OK || json_get_real(ran, "span_us", &ret->span_us, err) != OK)
        return err->code;
    ret->span_us /= calls;
    ret->us = per_call(t1 - t0, x->overhead_worker_us, calls);
    if (x->cfg.target == TARGET_CUDA && ret->us <= 0) /* shorter than an empty one: not quiet */
        ret->is_void = strcmp(arm, "spin") != 0;
    return OK;
}

/* Resume, go, done, sample, stop: the part between the two readings of the clock. */
static enum err_code timed(struct exam *x, struct runner *r, struct ca_msg *go, json_t *sets,
                           int64_t limit_ms, struct window *w, int64_t *ret_ns, struct err *err)
{
    own_json sampled = NULL;
    bool cuda = x->cfg.target == TARGET_CUDA;
    if (!runner_stopped(r, &w->reply))
        return OK;
    int64_t t0 = clock_ns();
    runner_resume(r);
    if (runner_say(r, go, -1, limit_ms, &w->reply, err) != OK)
        return err->code;
    if (reply_failed(&w->reply))
        return OK;
    if (cuda && ask_sets(x, "sample", sets, &sampled, err) != OK)
        return err->code;
    int64_t t1 = clock_ns();
    if (!runner_stop(r, &w->reply))
        return OK;
    if (!cuda) {
        t1 = clock_ns();
        if (ask_sets(x, "sample", sets, &sampled, err) != OK)
            return err->code;
    }
    *ret_ns = t1 - t0;
    return OK;
}

enum err_code window_candidate(struct exam *x, struct runner *r, int calls, double call_us,
                               enum window_look some, struct window *ret, struct err *err)
{
    struct ca_msg go = { .op = CA_OP_GO, .a = (uint64_t)calls };
    own_json sets = choose_sets(x, calls, go.set);
    int64_t ns = 0, limit = go_limit_ms(x, calls) + (int64_t)(call_us * calls / 1e3) * 10;
    *ret = (struct window){ 0 };
    uint16_t set[CA_SETS_MAX];
    memcpy(set, go.set, sizeof set);
    if (!runner_stop(r, &ret->reply))
        return OK;
    if (draw(x, sets, ret, err) != OK || timed(x, r, &go, sets, limit, ret, &ns, err) != OK)
        return err->code;
    if (!reply_failed(&ret->reply)) {
        own_json untouched = NULL;
        if (settle(x, ret, &untouched, err) != OK ||
            (some != LOOK_NEVER && look(x, set, calls, (int)some, untouched, ret, err) != OK))
            return err->code;
        ret->us = per_call(ns, x->overhead_runner_us, calls);
        ret->span_us = (double)ret->reply.msg.a / 1e3 / calls;
        /* Paid is the larger one: work that ran on after `done` shows in neither alone. */
        if (x->cfg.target == TARGET_CUDA && ret->span_us > ret->us)
            ret->us = ret->span_us;
    }
    runner_resume(r);
    return OK;
}

/* cuda: a trusted kernel of about 2 ms whose device time is known; cpu: a call that does
 * nothing. An empty kernel would make h 30 to 140 us too small on a device. */
static enum err_code calibrate_worker(struct exam *x, struct err *err)
{
    struct samples s = { 0 };
    bool cuda = x->cfg.target == TARGET_CUDA;
    x->overhead_worker_us = 0;
    for (int i = 0; i < CALIBRATIONS; i++) {
        struct window w;
        if (window_arm(x, cuda ? "spin" : "noop", 1, &w, err) != OK)
            return err->code;
        samples_add(&s, w.us - (cuda ? w.span_us : 0));
    }
    x->overhead_worker_us = stats_time(&s).median;
    return OK;
}

static enum err_code calibrate_runner(struct exam *x, struct err *err)
{
    struct runner *r = NULL;
    struct runner_reply reply;
    struct samples s = { 0 };
    enum step step;
    double ms;
    int64_t keep;
    bool cuda = x->cfg.target == TARGET_CUDA;
    if (exam_runner(x, CONTRACT_NATIVE, &r, err) != OK)
        return err->code;
    x->overhead_runner_us = 0;
    enum err_code code =
        candidate_load(r, cuda ? x->spin_so : x->noop_so, &step, &reply, &ms, &keep, err);
    for (int i = 0; code == OK && !reply_failed(&reply) && i < CALIBRATIONS; i++) {
        struct window w;
        code = window_candidate(x, r, 1, 5000, LOOK_NEVER, &w, err);
        reply = w.reply;
        /* us is at least the span on cuda: take the window itself. */
        samples_add(&s, cuda ? w.us - w.span_us : w.us);
    }
    runner_destroy(r);
    if (code == OK && reply_failed(&reply))
        return err_raise(err, ERR_CUDA, "the trusted calibration failed at step %d: %s%s",
                         (int)step, reply.how, reply.msg.text);
    x->overhead_runner_us = stats_time(&s).median;
    return code;
}

/* Median of a call in windows of so many calls of a trusted torch candidate. */
static enum err_code torch_call_us(struct exam *x, struct runner *r, int calls, double *ret,
                                   struct err *err)
{
    struct samples s = { 0 };
    for (int i = 0; i < CALIBRATIONS; i++) {
        struct window w;
        if (window_candidate(x, r, calls, 5000, LOOK_NEVER, &w, err) != OK)
            return err->code;
        if (reply_failed(&w.reply))
            return err_raise(err, ERR_CUDA, "the trusted torch candidate failed: %s%s", w.reply.how,
                             w.reply.msg.text);
        samples_add(&s, w.us);
    }
    *ret = stats_time(&s).median;
    return OK;
}

enum err_code window_calibrate_torch(struct exam *x, struct err *err)
{
    struct runner *r = NULL;
    struct runner_reply reply;
    enum step step;
    double ms, one = 0, many = 0;
    int64_t keep;
    if (x->first_us[CONTRACT_TORCH] > 0)
        return OK;
    if (exam_torch_spin(x, err) != OK || exam_runner(x, CONTRACT_TORCH, &r, err) != OK)
        return err->code;
    enum err_code code = candidate_load(r, x->torch_so, &step, &reply, &ms, &keep, err);
    if (code == OK && reply_failed(&reply))
        code = err_raise(err, ERR_CUDA, "the trusted torch candidate failed: %s%s", reply.how,
                         reply.msg.text);
    if (code == OK)
        code = torch_call_us(x, r, 1, &one, err);
    if (code == OK)
        code = torch_call_us(x, r, TORCH_CALLS, &many, err);
    runner_destroy(r);
    if (code != OK)
        return err_within(err, "calibrate the clock for torch");
    double more = one > many ? one - many : 0;
    x->first_us[CONTRACT_TORCH] = x->first_us[CONTRACT_NATIVE] + TORCH_ROOM * more;
    return OK;
}

enum err_code window_calibrate(struct exam *x, struct err *err)
{
    x->first_us[CONTRACT_NATIVE] = x->cfg.target == TARGET_CUDA ? FIRST_US_CUDA : FIRST_US_CPU;
    if (calibrate_worker(x, err) != OK || calibrate_runner(x, err) != OK)
        return err_within(err, "calibrate the clock");
    return OK;
}
