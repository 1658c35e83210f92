/* The published workdir's clock: sums of kernel times, of the candidate by its runner's CUPTI, of
 * PyTorch's arms by torch.profiler. A runner of its own: the first use costs seconds. */
#include <stdio.h>

#include "core/json.h"
#include "harness/exam_int.h"

#define OPEN_MS 30000
#define ASK_MS 120000
#define CALLS 10

static enum err_code of_candidate(struct exam *x, struct program p, struct verdict *v,
                                  struct err *err)
{
    struct runner *r = NULL;
    struct runner_reply reply;
    enum step step;
    double ms;
    int64_t keep;
    if (exam_runner(x, p.contract, &r, err) != OK)
        return err->code;
    enum err_code code = candidate_load(r, p.so_path, &step, &reply, &ms, &keep, err);
    for (int i = 0; i < 2 && code == OK && !reply_failed(&reply); i++) { /* the first warms up */
        struct ca_msg go = { .op = CA_OP_GO, .a = CALLS, .b = 1 };
        for (int s = 0; s < CALLS; s++)
            go.set[s] = (uint16_t)(s % x->n_sets);
        code = runner_say(r, &go, -1, OPEN_MS + go_limit_ms(x, CALLS), &reply, err);
    }
    runner_destroy(r);
    if (code == OK && reply_failed(&reply))
        verdict_note(v, "no sum of kernel times: %s%s", reply.how, reply.msg.text);
    else if (code == OK)
        v->kernels_us[ARM_CANDIDATE] = (double)reply.msg.b / 1e3 / CALLS;
    return code;
}

static enum err_code of_arm(struct exam *x, struct pytorch_arm *arm, double *ret_us,
                            struct err *err)
{
    own_json answer = NULL;
    bool ready = false;
    if (arm->time.windows == 0)
        return OK;
    if (baseline_prepare(x, arm, &ready, err) != OK || !ready)
        return err->code;
    json_t *ask = json_pack("{s:s,s:[i]}", "arm", arm->name, "sets", 0);
    if (worker_ask(x->worker, "device_sum", ask, ASK_MS, NULL, &answer, err) != OK)
        return err->code;
    return json_get_real(answer, "us", ret_us, err);
}

enum err_code kernels_sum(struct exam *x, struct program p, struct verdict *v, struct err *err)
{
    if (x->cfg.target != TARGET_CUDA) {
        verdict_note(v, "sums of kernel times are of cuda: not taken");
        return OK;
    }
    if (of_candidate(x, p, v, err) != OK ||
        of_arm(x, &x->arm[0], &v->kernels_us[ARM_EAGER], err) != OK ||
        of_arm(x, &x->arm[1], &v->kernels_us[ARM_COMPILE], err) != OK)
        return err_within(err, "sum kernel times");
    return OK;
}
