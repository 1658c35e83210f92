/* task check: is this task sound, and what would pass without doing its work? */
#include <stdio.h>
#include <stdlib.h>

#include "app/cmd.h"
#include "app/session.h"
#include "core/own.h"

static struct session_options options;

static const struct field fields[] = { SESSION_FIELDS(options) };

static void print_facts(const struct exam *x, const json_t *facts, struct arena *a)
{
    struct buf b = { .arena = a, .max = 1 << 20 };
    signature_print(exam_signature(x), &b);
    printf("%s\n", b.ptr ? b.ptr : "");
    bool sound = json_is_true(json_object_get(facts, "sound"));
    printf("%s\n", sound ? "sound" : "NOT SOUND");
    size_t i;
    json_t *line;
    json_array_foreach(json_object_get(facts, "degenerate"), i, line)
        printf("  - %s\n", json_string_value(line));
    const char *why =
        json_string_value(json_object_get(json_object_get(facts, "errors"), "compile"));
    if (why != NULL)
        printf("  torch.compile does not run it: %s\n", why);
    const json_t *floor = json_object_get(facts, "floor");
    printf(
        "  eager %.1f us, compile %.1f us; floor %.1f us (%.1f MB, %.2f GFLOP): headroom %.1fx\n",
        json_number_value(json_object_get(facts, "eager_us")),
        json_number_value(json_object_get(facts, "compile_us")),
        json_number_value(json_object_get(floor, "us")),
        json_number_value(json_object_get(floor, "bytes")) / 1e6,
        json_number_value(json_object_get(floor, "flops")) / 1e9,
        json_number_value(json_object_get(facts, "headroom")));
}

static enum err_code check(struct arena *a, struct exam *x, int *ret_status, struct err *err)
{
    own_json facts = NULL;
    if (exam_check(x, &facts, err) != OK)
        return err->code;
    if (options.json) {
        json_object_set_new(facts, "schema", json_string("cuda-agent/task-check/1"));
        own_mem char *text = json_dumps(facts, JSON_INDENT(1));
        printf("%s\n", text ? text : "{}");
    } else {
        print_facts(x, facts, a);
    }
    *ret_status = json_is_true(json_object_get(facts, "sound")) ? 0 : 1;
    return OK;
}

static enum err_code run(struct args args, int *ret_status, struct err *err)
{
    own_arena a = { 0 };
    struct exam_config cfg;
    struct store *store = NULL;
    struct exam *x = NULL;
    struct task task;
    if (args.n != 2 || strcmp(args.v[0], "check") != 0)
        return err_raise(err, ERR_USAGE, "wants 'check' and a task file");
    if (task_read(&a, args.v[1], &task, err) != OK ||
        session_config(&a, &options, &cfg, &store, err) != OK)
        return err->code;
    cfg.unsound_too = true;
    enum err_code code = exam_open(&cfg, &task, &x, err);
    if (code == OK)
        code = check(&a, x, ret_status, err);
    exam_close(x);
    store_close(store);
    return code;
}

const struct cmd cmd_task = {
    .name = "task",
    .operands = "check FILE",
    .summary = "is a task sound, and how much is there to gain?",
    .details =
        "Runs it in eager and compile; tells what would pass without doing the work: zeros, a\n"
        "constant, the answer for other inputs or weights. Exit status 0 sound, 1 not sound.\n\n"
        "example: cuda-agent task check examples/tasks/cpu/row_softmax.py",
    .fields = fields,
    .n_fields = COUNT(fields),
    .run = run,
};
