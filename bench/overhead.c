/* What the box and a native call cost here.
 *
 *   overhead PYTHON TASK.py
 *
 * box   start of a boxed program that does nothing, until it has ended; median of 50
 * call  ca_forward of a candidate that does nothing, on the cpu: the runner's own span over 256
 *       calls in one go, divided by 256; median of 50
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/own.h"
#include "harness/exam_int.h"
#include "sandbox/box.h"
#include "sys/clock.h"

#define TIMES 50

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print(const char *what, const char *unit, double v[TIMES])
{
    qsort(v, TIMES, sizeof *v, by_value);
    printf("%-5s median %.3f %s, least %.3f, most %.3f (%d times)\n", what, v[TIMES / 2], unit,
           v[0], v[TIMES - 1], TIMES);
}

static enum err_code boxes(struct err *err)
{
    double ms[TIMES];
    const char *argv[] = { "/bin/true", NULL }, *env[] = { NULL };
    for (int i = 0; i < TIMES; i++) {
        struct box_spec spec = { .role = BOX_BUILDER,
                                 .argv = argv,
                                 .env = env,
                                 .channel_fd = -1,
                                 .stdin_fd = -1,
                                 .out_fd = -1,
                                 .err_fd = -1,
                                 .mem_bytes = 256 << 20,
                                 .tmp_bytes = 1 << 20,
                                 .file_bytes = 1 << 20,
                                 .tasks_max = 8 };
        struct box *box = NULL;
        struct box_result end;
        int64_t t0 = clock_ns();
        if (box_start(&spec, &box, err) != OK || box_wait(box, 5000, &end, err) != OK)
            return err->code;
        ms[i] = (double)(clock_ns() - t0) / 1e6;
        box_destroy(box);
        if (end.end != BOX_EXITED || end.status != 0)
            return err_raise(err, ERR_SYSTEM, "/bin/true ended with status %d", end.status);
    }
    print("box", "ms", ms);
    return OK;
}

static enum err_code calls(struct exam *x, struct err *err)
{
    double us[TIMES], ms;
    struct runner *r = NULL;
    struct runner_reply reply;
    enum step step;
    int64_t keep;
    if (exam_runner(x, CONTRACT_NATIVE, &r, err) != OK ||
        candidate_load(r, x->noop_so, &step, &reply, &ms, &keep, err) != OK)
        return err->code;
    for (int i = 0; i < TIMES && !reply_failed(&reply); i++) {
        struct ca_msg go = { .op = CA_OP_GO, .a = CA_SETS_MAX };
        for (int s = 0; s < CA_SETS_MAX; s++)
            go.set[s] = (uint16_t)(s % x->n_sets);
        if (runner_say(r, &go, -1, 5000, &reply, err) != OK)
            return err->code;
        us[i] = (double)reply.msg.a / 1e3 / CA_SETS_MAX;
    }
    runner_destroy(r);
    if (reply_failed(&reply))
        return err_raise(err, ERR_SYSTEM, "the runner failed: %s", reply.msg.text);
    print("call", "us", us);
    return OK;
}

int main(int argc, char **argv)
{
    own_arena a = { 0 };
    struct err err = { 0 };
    static struct task task;
    struct exam *x = NULL;
    if (argc < 3) {
        fprintf(stderr, "usage: overhead PYTHON TASK.py\n");
        return 2;
    }
    struct exam_config cfg = { .target = TARGET_CPU, .python = argv[1] };
    if (boxes(&err) == OK && task_read(&a, argv[2], &task, &err) == OK &&
        exam_open(&cfg, &task, &x, &err) == OK)
        (void)!calls(x, &err);
    exam_close(x);
    if (err.code != OK)
        fprintf(stderr, "overhead: %s\n  %s\n", err.text, err.hint);
    return err.code == OK ? 0 : 2;
}
