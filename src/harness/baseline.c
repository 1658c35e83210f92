/* PyTorch's arms: measured once per task, device and versions, kept in the store. */
#include <stdio.h>
#include <stdlib.h>

#include "core/json.h"
#include "harness/exam_int.h"
#include "sys/clock.h"

#define WINDOWS 20
#define PREPARE_MS 600000
#define ASK_MS 120000
#define BUDGET_MS 4000 /* per arm */

static enum err_code from_store(struct exam *x, struct pytorch_arm *a, struct err *err)
{
    const char *text = NULL;
    struct baseline_key key = { x->task.hash, x->uuid, x->versions, a->name };
    if (x->cfg.store == NULL)
        return OK;
    if (store_baseline_get(x->cfg.store, &x->arena, &key, &text, err) != OK || text == NULL)
        return err->code;
    own_json j = NULL;
    if (json_parse(str_from(text), 1 << 20, &j, err) != OK)
        return err_within(err, "stored baseline");
    struct arm_time t = { json_number_value(json_object_get(j, "median")),
                          json_number_value(json_object_get(j, "lo")),
                          json_number_value(json_object_get(j, "hi")),
                          (int)json_integer_value(json_object_get(j, "windows")),
                          (int)json_integer_value(json_object_get(j, "void")) };
    a->time = t;
    a->right = json_is_true(json_object_get(j, "right"));
    a->known = true;
    return OK;
}

static enum err_code to_store(struct exam *x, const struct pytorch_arm *a, struct err *err)
{
    struct baseline_key key = { x->task.hash, x->uuid, x->versions, a->name };
    if (x->cfg.store == NULL)
        return OK;
    own_json j = json_pack("{s:f,s:f,s:f,s:i,s:i,s:b}", "median", a->time.median, "lo", a->time.lo,
                           "hi", a->time.hi, "windows", a->time.windows, "void",
                           a->time.void_windows, "right", a->right);
    own_mem char *text = json_dumps(j, JSON_COMPACT);
    return store_baseline_put(x->cfg.store, &key, text, err);
}

static json_t *all_sets(const struct exam *x)
{
    json_t *sets = json_array();
    for (int s = 0; s < x->n_sets; s++)
        json_array_append_new(sets, json_integer(s));
    return sets;
}

enum err_code baseline_prepare(struct exam *x, struct pytorch_arm *arm, bool *ret_ready,
                               struct err *err)
{
    own_json answer = NULL;
    struct str reason;
    *ret_ready = arm->prepared;
    if (arm->prepared)
        return OK;
    json_t *ask = json_pack("{s:s,s:b,s:o}", "arm", arm->name, "prepare", 1, "sets", all_sets(x));
    if (worker_ask(x->worker, "run", ask, PREPARE_MS, NULL, &answer, err) != OK ||
        json_get_flag(answer, "ready", ret_ready, err) != OK ||
        json_get_text(answer, "reason", &reason, err) != OK)
        return err->code;
    arm->prepared = *ret_ready;
    if (!*ret_ready && !str_eq(reason, S("only on cuda")))
        exam_say(x, "  %s does not run: %.*s", arm->shown, STR_FMT(reason));
    return OK;
}

/* One answer of the arm on one family of inputs, judged as a candidate's. */
static enum err_code judge_one(struct exam *x, const char *arm, const char *family, bool *ret_pass,
                               struct err *err)
{
    own_json drawn = NULL;
    own_json ran = NULL;
    own_json compared = NULL;
    json_t *draw = json_pack("{s:[i],s:s,s:s}", "sets", 0, "family", family, "weights", "keep");
    if (worker_ask(x->worker, "draw", draw, ASK_MS, NULL, &drawn, err) != OK ||
        worker_ask(x->worker, "run", json_pack("{s:s,s:[i]}", "arm", arm, "sets", 0), ASK_MS, NULL,
                   &ran, err) != OK ||
        worker_ask(x->worker, "compare", json_pack("{s:[i]}", "sets", 0), ASK_MS, NULL, &compared,
                   err) != OK)
        return err->code;
    return json_get_flag(compared, "pass", ret_pass, err);
}

/* Who is off by more than a candidate may be is no rival: TF32 is, on some tasks. PyTorch's
 * defaults define what is right; a graph computes what it captured. */
static enum err_code judge(struct exam *x, struct pytorch_arm *a, struct err *err)
{
    a->right = true;
    for (int i = 0; a->other_precision && a->right && i < x->n_families; i++)
        if (judge_one(x, a->name, x->family[i], &a->right, err) != OK)
            return err->code;
    if (!a->right)
        exam_say(x, "  %s is off by more than the tolerance: no rival", a->shown);
    return OK;
}

static enum err_code windows(struct exam *x, struct pytorch_arm *a, struct err *err)
{
    struct window w;
    if (window_arm(x, a->name, 1, &w, err) != OK)
        return err->code;
    int calls = window_calls(x, w.us);
    int64_t until = clock_ms() + BUDGET_MS;
    for (int i = 0; i < WINDOWS && (i < 7 || clock_ms() < until); i++) {
        if (window_arm(x, a->name, calls, &w, err) != OK)
            return err->code;
        if (w.is_void)
            a->samples.voids++;
        else
            samples_add(&a->samples, w.us);
    }
    a->time = stats_time(&a->samples);
    return OK;
}

/* Compiling may run beside others that compile or verify; the windows run alone. */
static enum err_code measure(struct exam *x, struct pytorch_arm *a, struct err *err)
{
    bool ready = false;
    if (exam_lock(x, HOLD_TOGETHER, err) != OK)
        return err->code;
    enum err_code code = baseline_prepare(x, a, &ready, err);
    if (code == OK && ready)
        code = judge(x, a, err);
    if (code == OK && ready)
        code = exam_lock(x, HOLD_ALONE, err);
    if (code == OK && ready)
        code = windows(x, a, err);
    exam_unlock(x);
    if (code == OK && ready)
        code = to_store(x, a, err);
    a->known = code == OK;
    return code;
}

enum err_code baseline_all(struct exam *x, struct err *err)
{
    static const struct pytorch_arm table[PYTORCH_ARMS] = {
        { .name = "eager", .shown = "eager" },
        { .name = "compile", .shown = "compile" },
        { .name = "compile_tf32",
          .shown = "compile+tf32",
          .cuda_only = true,
          .other_precision = true },
        { .name = "graph_eager", .shown = "graph(eager)", .cuda_only = true },
        { .name = "graph_compile", .shown = "graph(compile)", .cuda_only = true },
        { .name = "graph_compile_tf32",
          .shown = "graph(compile+tf32)",
          .cuda_only = true,
          .other_precision = true },
        { .name = "max_autotune", .shown = "max-autotune", .on_demand = true },
    };
    if (x->baselines_known)
        return OK;
    memcpy(x->arm, table, sizeof table);
    bool cuda = x->cfg.target == TARGET_CUDA;
    for (int i = 0; i < PYTORCH_ARMS; i++) {
        struct pytorch_arm *a = &x->arm[i];
        if ((a->cuda_only && !cuda) || (a->on_demand && !x->cfg.max_autotune)) {
            a->known = true;
            continue;
        }
        if (from_store(x, a, err) != OK)
            return err->code;
        if (a->known)
            continue;
        exam_say(x, "measuring %s", a->shown);
        if (exam_calibrate(x, err) != OK || measure(x, a, err) != OK)
            return err_within(err, "measure %s", a->shown);
    }
    if (x->arm[0].time.windows == 0)
        return err_raise(err, ERR_TASK, "eager could not be timed");
    x->baselines_known = true;
    return OK;
}

const struct pytorch_arm *baseline_best(const struct exam *x)
{
    const struct pytorch_arm *best = &x->arm[0];
    for (int i = 1; i < PYTORCH_ARMS; i++)
        if (x->arm[i].time.windows > 0 && x->arm[i].right &&
            x->arm[i].time.median < best->time.median)
            best = &x->arm[i];
    return best;
}

static json_t *time_json(const struct pytorch_arm *a)
{
    if (a->time.windows == 0)
        return json_null();
    return json_pack("{s:s,s:f,s:f,s:f,s:i,s:b}", "name", a->shown, "median", a->time.median, "lo",
                     a->time.lo, "hi", a->time.hi, "windows", a->time.windows, "right", a->right);
}

enum err_code exam_baselines(struct exam *x, json_t **ret, struct err *err)
{
    if (baseline_all(x, err) != OK)
        return err->code;
    json_t *j = json_pack("{s:o,s:o,s:o}", "eager", time_json(&x->arm[0]), "compile",
                          time_json(&x->arm[1]), "best", time_json(baseline_best(x)));
    json_t *arms = json_array();
    for (int i = 0; i < PYTORCH_ARMS; i++)
        if (x->arm[i].time.windows > 0)
            json_array_append_new(arms, time_json(&x->arm[i]));
    json_object_set_new(j, "arms", arms);
    *ret = j;
    return OK;
}
