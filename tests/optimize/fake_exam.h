/* An exam without a worker: the test says what each candidate gets.
 *
 * It takes the place of src/harness at link time; one test program includes it. A candidate's first
 * file tells the fake what to answer: "pass 120" (microseconds), "wrong", "error", "nowhere" (does
 * not compile), "flaky 90" (passes the quick look, fails the full one), "stop" (^C arrives while it
 * is graded; it passes).
 */
#ifndef TESTS_FAKE_EXAM_H
#define TESTS_FAKE_EXAM_H

#include <signal.h>
#include <stdlib.h>

#include "core/json.h"
#include "harness/exam.h"
#include "reward/reward.h"

struct fake_exam {
    int opened, closed, graded, graded_full;
    const char *device_uuid; /* what verdicts say */
    const char *check;       /* JSON of exam_check */
    bool no_graph;           /* exam_trace refuses */
    bool deaf;               /* "stop" raises no signal */
};

static struct fake_exam fake;

struct exam {
    struct signature sig;
    json_t *hello;
};

enum err_code exam_open(const struct exam_config *cfg, const struct task *task, struct exam **ret,
                        struct err *err)
{
    (void)cfg, (void)task, (void)err;
    struct exam *x = calloc(1, sizeof *x);
    x->hello =
        json_pack("{s:{s:s, s:s}, s:i}", "device", "name", "A device", "arch", "90a", "threads", 2);
    fake.opened++;
    *ret = x;
    return OK;
}

void exam_close(struct exam *x)
{
    if (x == NULL)
        return;
    fake.closed++;
    json_decref(x->hello);
    free(x);
}

const struct signature *exam_signature(const struct exam *x)
{
    return &x->sig;
}

const json_t *exam_hello(const struct exam *x)
{
    return x->hello;
}

enum err_code exam_check(struct exam *x, json_t **ret, struct err *err)
{
    (void)x;
    const char *text =
        fake.check ? fake.check : "{\"sound\":true, \"degenerate\":[], \"facts\":{}}";
    return json_parse(str_from(text), 1 << 16, ret, err);
}

enum err_code exam_trace(struct exam *x, json_t **ret, struct err *err)
{
    (void)x;
    if (fake.no_graph)
        return err_raise(err, ERR_TASK, "the model branches on its data");
    *ret = json_pack("{s:{s:i}}", "graph", "v", 1);
    return OK;
}

enum err_code exam_baselines(struct exam *x, json_t **ret, struct err *err)
{
    (void)x, (void)err;
    *ret = json_pack("{s:{s:f,s:f,s:f,s:i}, s:{s:s,s:f,s:f,s:f,s:i}}", "eager", "median", 400.0,
                     "lo", 396.0, "hi", 404.0, "windows", 30, "best", "name", "graph(eager)",
                     "median", 200.0, "lo", 198.0, "hi", 202.0, "windows", 30);
    return OK;
}

static void passed(struct verdict *v, double us)
{
    v->status = VERDICT_PASS;
    v->time_us[ARM_CANDIDATE] = (struct arm_time){ us, us * 0.99, us * 1.01, 30, 0 };
    v->time_us[ARM_BEST] = (struct arm_time){ 200, 198, 202, 30, 0 };
    v->vs_eager = (struct ratio){ 400 / us, 396 / us, 404 / us };
    v->vs_compile = (struct ratio){ 300 / us, 297 / us, 303 / us };
    v->vs_best = (struct ratio){ 200 / us, 198 / us, 202 / us };
    memcpy(v->best_name, "graph(eager)", 13);
}

enum err_code exam_keep(struct exam *x, const struct candidate *c, const struct grade_options *opt,
                        const struct verdict *v, struct err *err)
{
    (void)x, (void)c, (void)opt, (void)v, (void)err;
    return OK;
}

enum err_code exam_grade(struct exam *x, const struct candidate *c, const struct grade_options *opt,
                         struct verdict *ret, struct err *err)
{
    (void)x;
    struct str rest = c->file[0].text, word, number;
    double us = 0;
    memset(ret, 0, sizeof *ret);
    fake.graded++;
    fake.graded_full += !opt->quick;
    str_cut(&rest, ' ', &word);
    if (str_cut(&rest, ' ', &number) && str_real(number, 0, 1e9, &us, err) != OK)
        return err->code;
    const char *uuid = fake.device_uuid ? fake.device_uuid : "device-1";
    memcpy(ret->candidate_hash, c->hash, sizeof ret->candidate_hash);
    memcpy(ret->author, c->author, strlen(c->author) + 1);
    memcpy(ret->device_uuid, uuid, strlen(uuid) + 1);
    memcpy(ret->reason, "as the test wants", 18);
    ret->target = c->target;
    if (str_eq(word, S("nowhere"))) {
        ret->device_uuid[0] = '\0';
        ret->status = VERDICT_COMPILE_ERROR;
        return OK;
    }
    if (str_eq(word, S("error")))
        return err_raise(err, ERR_WORKER, "the worker died");
    if (str_eq(word, S("stop")) && !fake.deaf)
        raise(SIGINT);
    if (str_eq(word, S("wrong")) || (str_eq(word, S("flaky")) && !opt->quick))
        ret->status = VERDICT_WRONG;
    else
        passed(ret, us);
    ret->reward_milestone = reward_milestone(ret, AGAINST_BEST);
    return OK;
}

#endif
