/* One grading: build, load, verify, time; and whose fault a failure is. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "core/json.h"
#include "harness/exam_int.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/stop.h"

#define BUILD_MS 180000
#define READY_MS 60000
#define LOAD_MS 30000
#define SETUP_MS 60000
#define SENTINEL_SLOW 1.25
#define SENTINEL_TRIES 4
#define SENTINEL_WAIT_MS 300

bool reply_failed(const struct runner_reply *r)
{
    return r->end != RUNNER_ANSWERED || r->msg.status != CA_DONE;
}

int64_t go_limit_ms(const struct exam *x, int calls)
{
    return 2000 + (int64_t)(20 * x->eager_us * calls / 1e3);
}

enum err_code candidate_load(struct runner *r, const char *so_path, enum step *ret_step,
                             struct runner_reply *ret, double *ret_setup_ms, int64_t *ret_keep,
                             struct err *err)
{
    own_fd fd = -1;
    if (file_sealed(so_path, &fd, err) != OK)
        return err->code;
    *ret_step = STEP_READY;
    if (runner_ready(r, READY_MS, ret, err) != OK || reply_failed(ret))
        return err->code;
    struct ca_msg m = { .op = CA_OP_CODE };
    *ret_step = STEP_CODE;
    if (runner_say(r, &m, fd, LOAD_MS, ret, err) != OK || reply_failed(ret))
        return err->code;
    m = (struct ca_msg){ .op = CA_OP_SIZES };
    *ret_step = STEP_SIZES;
    if (runner_say(r, &m, -1, LOAD_MS, ret, err) != OK || reply_failed(ret))
        return err->code;
    *ret_keep = (int64_t)ret->msg.b;
    m = (struct ca_msg){ .op = CA_OP_SETUP };
    *ret_step = STEP_SETUP;
    int64_t t0 = clock_ns();
    if (runner_say(r, &m, -1, SETUP_MS, ret, err) != OK)
        return err->code;
    *ret_setup_ms = (double)(clock_ns() - t0) / 1e6;
    return OK;
}

/* Would a candidate that does nothing get through the same steps now? */
static enum err_code machine_well(struct exam *x, bool *ret, struct err *err)
{
    struct runner *r = NULL;
    struct runner_reply reply;
    enum step step;
    double ms;
    int64_t keep;
    if (exam_runner(x, CONTRACT_NATIVE, &r, err) != OK)
        return err->code;
    enum err_code code = candidate_load(r, x->noop_so, &step, &reply, &ms, &keep, err);
    if (code == OK && !reply_failed(&reply)) {
        struct ca_msg go = { .op = CA_OP_GO, .a = 1 };
        code = runner_say(r, &go, -1, READY_MS, &reply, err);
    }
    runner_destroy(r);
    *ret = code == OK && !reply_failed(&reply);
    return code;
}

static const char *step_text(enum contract contract, enum step step)
{
    static const char *const text[CONTRACTS][5] = {
        [CONTRACT_NATIVE] = { "starting", "loading the shared object", "ca_scratch and ca_keep",
                              "ca_setup", "ca_forward" },
        [CONTRACT_TORCH] = { "starting", "loading model_new.py or making ModelNew", "starting",
                             "loading the weights into ModelNew", "ModelNew.forward" },
    };
    return text[contract][step];
}

static void blame(struct verdict *v, enum step step, const struct runner_reply *r)
{
    if (r->end == RUNNER_HUNG) {
        v->status = step == STEP_SETUP ? VERDICT_SETUP_TIMEOUT : VERDICT_TIMEOUT;
        snprintf(v->reason, sizeof v->reason, "%s did not end within %.1f s",
                 step_text(v->contract, step), (double)r->limit_ms / 1e3);
    } else if (r->end == RUNNER_DIED) {
        v->status = VERDICT_CRASHED;
        snprintf(v->reason, sizeof v->reason, "in %s: %s", step_text(v->contract, step), r->how);
    } else {
        /* A runner may say that of itself: it is no better off. */
        bool removed =
            v->contract == CONTRACT_TORCH && str_starts(str_from(r->msg.text), S("forbidden: "));
        v->status = removed ? VERDICT_FORBIDDEN : VERDICT_CRASHED;
        snprintf(v->reason, sizeof v->reason, "in %s: %s", step_text(v->contract, step),
                 r->msg.text + (removed ? 11 : 0));
    }
}

/* The runner failed: the candidate's verdict, unless nothing works here just now. It goes first:
 * with all memory in its hands nothing else would run. */
static enum err_code judge_failure(struct exam *x, struct runner **r, struct verdict *v,
                                   enum step step, const struct runner_reply *reply,
                                   struct err *err)
{
    bool well = false;
    runner_destroy(*r);
    *r = NULL;
    if (machine_well(x, &well, err) != OK)
        return err_within(err, "after a candidate failed");
    if (!well)
        return err_raise(err, ERR_CUDA, "nothing runs on this device just now (in %s: %s%s)",
                         step_text(v->contract, step), reply->how, reply->msg.text);
    blame(v, step, reply);
    return OK;
}

static void fill_static(struct exam *x, const struct candidate *c, struct verdict *v)
{
    char id[27];
    store_id(id);
    *v = (struct verdict){ .target = c->target,
                           .contract = c->contract,
                           .preset = x->cfg.preset,
                           .against = x->cfg.against,
                           .precision = PREC_NONE,
                           .status = VERDICT_WRONG }; /* until it is found right */
    snprintf(v->id, sizeof v->id, "%s", id);
    snprintf(v->task_hash, sizeof v->task_hash, "%s", x->task.hash);
    snprintf(v->task_name, sizeof v->task_name, "%s", x->task.name);
    snprintf(v->candidate_hash, sizeof v->candidate_hash, "%s", c->hash);
    snprintf(v->author, sizeof v->author, "%s", c->author ? c->author : "hand");
    snprintf(v->device_uuid, sizeof v->device_uuid, "%s", x->uuid);
    snprintf(v->device_name, sizeof v->device_name, "%s", x->device);
    const json_t *d = json_object_get(x->hello, "device");
    snprintf(v->driver, sizeof v->driver, "%s", json_string_value(json_object_get(d, "driver")));
    snprintf(v->torch_version, sizeof v->torch_version, "%s",
             json_string_value(json_object_get(x->hello, "torch")));
    bool cuda = c->target == TARGET_CUDA;
    snprintf(v->compiler_version, sizeof v->compiler_version, "%s",
             cuda ? x->tools.nvcc_version : x->tools.gcc_version);
    snprintf(v->cuda_version, sizeof v->cuda_version, "%s",
             cuda ? json_string_value(json_object_get(x->hello, "cuda")) : "");
    snprintf(v->product_version, sizeof v->product_version, "%s", CA_VERSION_TEXT);
    struct box_facts box;
    struct err ignored = { 0 };
    if (box_probe(&box, &ignored) == OK) {
        v->box_rung = box.rung;
        snprintf(v->box_limits_by, sizeof v->box_limits_by, "%s", box.limits_by);
        if (box.rung > 2)
            verdict_note(v, "no wall stood round the candidate (--sandbox disposable): trust this "
                            "result as far as you trust its author");
    }
    v->floor_bytes = x->floor_bytes;
    v->floor_flops = x->floor_flops;
    v->floor_us = x->floor_us;
    v->tol_used = preset_tol(x->cfg.preset);
}

static enum err_code build(struct exam *x, const struct candidate *c, struct verdict *v,
                           struct arena *a, const char **ret_so, struct err *err)
{
    struct build_request req = { c, &x->tools, x->arch, BUILD_MS,
                                 c->contract == CONTRACT_TORCH ? &x->torch : NULL };
    struct build_result b;
    if (build_run(a, &req, &b, err) != OK)
        return err->code;
    v->cost_build_ms = b.wall_ms;
    *ret_so = b.so_path;
    if (!b.ok) {
        v->status = b.forbidden ? VERDICT_FORBIDDEN : VERDICT_COMPILE_ERROR;
        snprintf(v->reason, sizeof v->reason, "%s", b.reason);
        size_t most = sizeof v->build_log - 1;
        snprintf(v->build_log, sizeof v->build_log, "%.*s",
                 (int)(b.log.len < most ? b.log.len : most), b.log.ptr);
        str_plain(v->build_log);
    }
    return OK;
}

/* One look at the device; *ret_slow: how its sentinel compares with the quiet one. */
static enum err_code probe(struct exam *x, struct verdict *v, double *ret_slow, struct err *err)
{
    own_json answer = NULL;
    struct str clocks, throttle;
    double now = 0, quiet = 0;
    if (worker_ask(x->worker, "probe", NULL, 60000, NULL, &answer, err) != OK ||
        json_get_text(answer, "clocks", &clocks, err) != OK ||
        json_get_text(answer, "throttle", &throttle, err) != OK ||
        json_get_real(answer, "sentinel_us", &now, err) != OK ||
        json_get_real(answer, "sentinel_quiet_us", &quiet, err) != OK)
        return err_within(err, "probe the device");
    snprintf(v->clocks, sizeof v->clocks, "%.*s", STR_FMT(clocks));
    snprintf(v->throttle, sizeof v->throttle, "%.*s", STR_FMT(throttle));
    *ret_slow = quiet > 0 ? now / quiet : 1;
    return OK;
}

/* A device that stays slower than it was does not measure: neither a verdict nor a baseline. */
static enum err_code health(struct exam *x, struct verdict *v, struct err *err)
{
    double slow = 0;
    for (int tries = 0; tries < SENTINEL_TRIES; tries++) {
        if (probe(x, v, &slow, err) != OK)
            return err->code;
        if (x->cfg.target == TARGET_CPU || slow < SENTINEL_SLOW)
            return OK;
        poll(NULL, 0, SENTINEL_WAIT_MS);
    }
    err_raise(err, ERR_CUDA,
              "the device has become slower: its sentinel takes %.2f x its quiet time", slow);
    return err_hint(err, "wait until it is cool and nobody else computes on it, then grade again");
}

/* Load, set up and verify beside others that do the same. *ret_pass: there is something to time. */
static enum err_code check(struct exam *x, const char *so, struct runner **r,
                           const struct grade_options *opt, struct verdict *v, bool *ret_pass,
                           struct err *err)
{
    struct verify_result res = { 0 };
    struct runner_reply reply;
    enum step step;
    int64_t t0 = clock_ms();
    if (candidate_load(*r, so, &step, &reply, &v->setup_ms, &v->keep_bytes, err) != OK)
        return err->code;
    v->cost_start_ms = clock_ms() - t0;
    if (reply_failed(&reply))
        return judge_failure(x, r, v, step, &reply, err);
    t0 = clock_ms();
    if (verify_candidate(x, *r, opt, v, &res, err) != OK)
        return err_within(err, "verify");
    v->cost_check_ms = clock_ms() - t0;
    if (reply_failed(&res.reply))
        return judge_failure(x, r, v, res.step, &res.reply, err);
    v->status = res.pass ? VERDICT_PASS : VERDICT_WRONG;
    *ret_pass = res.pass;
    return OK;
}

static enum err_code check_and_time(struct exam *x, struct program p, struct runner **r,
                                    const struct grade_options *opt, struct verdict *v,
                                    struct err *err)
{
    struct verify_result res = { 0 };
    bool pass = false;
    if (exam_lock(x, HOLD_TOGETHER, err) != OK)
        return err->code;
    enum err_code code = check(x, p.so_path, r, opt, v, &pass, err);
    exam_unlock(x);
    if (code != OK || !pass || opt->until == GRADE_VERIFY)
        return code;

    /* The candidate's threads must not slow PyTorch down. */
    if (box_pause(runner_box(*r), err) != OK || baseline_all(x, err) != OK ||
        box_resume(runner_box(*r), err) != OK || exam_lock(x, HOLD_ALONE, err) != OK)
        return err->code;
    int64_t t0 = clock_ms();
    code = timing_candidate(x, &(struct timed){ p, *r, NULL }, opt, v, &res, err);
    if (code == OK && opt->kernels && res.pass)
        code = kernels_sum(x, p, v, err);
    if (code == OK)
        code = health(x, v, err);
    exam_unlock(x);
    v->cost_time_ms = clock_ms() - t0;
    if (code != OK)
        return err_within(err, "time");
    if (reply_failed(&res.reply) && v->status != VERDICT_TAMPERED)
        return judge_failure(x, r, v, res.step, &res.reply, err);
    if (!res.pass && v->status == VERDICT_PASS)
        v->status = VERDICT_WRONG;
    return OK;
}

static void reward(struct verdict *v)
{
    double us = v->time_us[ARM_CANDIDATE].median;
    v->floor_share = us > 0 ? v->floor_us / us : 0;
    v->reward_milestone = reward_milestone(v, v->against);
    v->reward_speedup = reward_speedup(v);
}

/* PyTorch's own answer through draw and comparison, and the sentinel, with no candidate alive. */
static enum err_code trusted_round(struct exam *x, bool *ret, struct err *err)
{
    own_json drawn = NULL;
    own_json ran = NULL;
    own_json compared = NULL;
    struct verdict *aside = arena_new(&x->arena, struct verdict, 1);
    double slow = 1;
    json_t *draw = json_pack("{s:[i],s:s,s:s,s:b,s:b}", "sets", 0, "family", x->family[0],
                             "weights", "keep", "poison", 1, "flush", 0);
    if (worker_ask(x->worker, "draw", draw, READY_MS, NULL, &drawn, err) != OK ||
        worker_ask(x->worker, "run", json_pack("{s:s,s:[i]}", "arm", "eager", "sets", 0), READY_MS,
                   NULL, &ran, err) != OK ||
        worker_ask(x->worker, "compare", json_pack("{s:[i]}", "sets", 0), READY_MS, NULL, &compared,
                   err) != OK ||
        json_get_flag(compared, "pass", ret, err) != OK || probe(x, aside, &slow, err) != OK)
        return err->code;
    *ret = *ret && (x->cfg.target == TARGET_CPU || slow < SENTINEL_SLOW);
    return OK;
}

/* The machine failed beside a candidate. Does all go well without it? */
static bool well_without(struct exam *x)
{
    struct err ignored = { 0 };
    bool well = false;
    return machine_well(x, &well, &ignored) == OK && well &&
           trusted_round(x, &well, &ignored) == OK && well;
}

/* A machine that stumbles beside the same candidate twice, and not without it, is not at fault:
 * who takes all memory or never lets the device rest would get no verdict, else. */
static enum err_code grade_fairly(struct exam *x, struct program p, const struct grade_options *opt,
                                  struct verdict *v, struct err *err)
{
    const struct verdict fresh = *v;
    for (int tries = 0;; tries++) {
        struct runner *r = NULL;
        if (exam_runner(x, p.contract, &r, err) != OK)
            return err->code;
        enum err_code code = check_and_time(x, p, &r, opt, v, err);
        runner_destroy(r);
        if ((code != ERR_CUDA && code != ERR_TIMEOUT) || stop_asked() || !well_without(x))
            return code;
        if (tries > 0)
            break;
        exam_say(x, "the exam stumbled beside this candidate (%s); once more", err->text);
        *v = fresh;
        *err = (struct err){ 0 };
    }
    *v = fresh;
    v->status = VERDICT_CRASHED;
    snprintf(v->reason, sizeof v->reason,
             "twice the exam could not go on beside it, and could without it: %.300s", err->text);
    *err = (struct err){ 0 };
    return OK;
}

/* While no candidate lives: what goes wrong here is nobody's but ours. */
static enum err_code calibrate(struct exam *x, const struct candidate *c,
                               const struct grade_options *opt, struct err *err)
{
    if (opt->until != GRADE_TIME)
        return OK;
    if (exam_calibrate(x, err) != OK || c->contract != CONTRACT_TORCH)
        return err->code;
    if (exam_lock(x, HOLD_ALONE, err) != OK)
        return err->code;
    enum err_code code = window_calibrate_torch(x, err);
    exam_unlock(x);
    return code;
}

/* so: built before, or NULL. */
static enum err_code grade_once(struct exam *x, const struct candidate *c, const char *so,
                                const struct grade_options *opt, struct verdict *v, struct err *err)
{
    own_arena tmp = { 0 };
    fill_static(x, c, v);
    /* It comes up while the candidate is built. */
    if (c->contract == CONTRACT_TORCH && opt->until != GRADE_COMPILE &&
        exam_fork_server(x, err) != OK)
        return err->code;
    if (so == NULL && (build(x, c, v, &tmp, &so, err) != OK || so == NULL))
        return err->code;
    if (opt->until == GRADE_COMPILE) {
        v->status = VERDICT_PASS;
        return OK;
    }
    if (calibrate(x, c, opt, err) != OK)
        return err->code;
    return grade_fairly(x, (struct program){ so, c->contract }, opt, v, err);
}

/* The worker died or the machine stumbled: what had been done is done again, once. */
enum err_code exam_grade_object(struct exam *x, const struct candidate *c, const char *so_path,
                                const struct grade_options *opt, struct verdict *ret,
                                struct err *err)
{
    enum err_code code = grade_once(x, c, so_path, opt, ret, err);
    if (code == ERR_WORKER && !worker_alive(x->worker)) {
        exam_say(x, "the worker ended (%s); once more", err->text);
        *err = (struct err){ 0 };
        code = exam_revive(x, err);
        if (code == OK)
            code = grade_once(x, c, so_path, opt, ret, err);
    }
    if (code != OK)
        return code;
    reward(ret);
    if (c->contract == CONTRACT_TORCH && x->fork == NULL) /* compiled only */
        return OK;
    return exam_refill(x, c->contract, err);
}

enum err_code exam_grade(struct exam *x, const struct candidate *c, const struct grade_options *opt,
                         struct verdict *ret, struct err *err)
{
    if (exam_grade_object(x, c, NULL, opt, ret, err) != OK)
        return err->code;
    if (x->cfg.store != NULL && opt->until == GRADE_TIME &&
        (store_candidate_put(x->cfg.store, c, x->task.hash, err) != OK ||
         store_verdict_put(x->cfg.store, ret, err) != OK))
        return err_within(err, "keep the verdict");
    return OK;
}

enum err_code exam_rehearse(struct exam *x, const struct rehearsal *played,
                            const struct grade_options *opt, struct verdict *ret, struct err *err)
{
    const struct candidate nobody = { .target = x->cfg.target, .author = "rehearsal" };
    struct verify_result res = { 0 };
    fill_static(x, &nobody, ret);
    ret->status = VERDICT_PASS;
    if (exam_calibrate(x, err) != OK || baseline_all(x, err) != OK ||
        exam_lock(x, HOLD_ALONE, err) != OK)
        return err->code;
    enum err_code code = timing_candidate(
        x, &(struct timed){ { NULL, CONTRACT_NATIVE }, NULL, played }, opt, ret, &res, err);
    exam_unlock(x);
    if (code == OK)
        reward(ret);
    return code;
}
