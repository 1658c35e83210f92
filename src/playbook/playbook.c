#include "playbook/playbook.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "playbook/knobs.h"

/* The space, one knob a row: what is tried beside the safe start. */
struct knob_row {
    const char *name;
    size_t offset;
    int value[6]; /* ends with -1 */
    bool cuda, cpu;
    bool products; /* only where there is a matrix product */
    bool rows;     /* only where there are reductions */
};

#define AT(field) offsetof(struct knobs, field)

static const struct knob_row space[] = {
    { "tf32", AT(tf32), { 1, -1 }, true, false, true, false },
    { "fast-math", AT(fast_math), { 1, -1 }, true, true, false, false },
    { "packs per thread", AT(per_thread), { 2, 8, 1, -1 }, true, false, false, true },
    { "rows per block", AT(rows), { 4, 16, -1 }, true, false, false, true },
    { "packs at once", AT(unroll), { 2, 4, -1 }, true, false, false, false },
    { "bits of a vector", AT(simd_bits), { 512, 256, -1 }, false, true, false, false },
    { "unrolled loops", AT(unroll), { 2, -1 }, false, true, false, true },
    { "rows at once", AT(chunk), { 1, 16, -1 }, false, true, false, true },
    { "threads per block", AT(block), { 128, 512, -1 }, true, false, false, false },
    { "neighbours per access", AT(vec), { 2, 8, -1 }, true, false, false, false },
};

const struct knobs knobs_safe = { .vec = 4, .block = 256, .per_thread = 4, .rows = 8, .unroll = 1 };

struct author {
    struct author_ctx *ctx;
    struct arena *arena;
    struct program program;
    struct plan *plan;
    struct verdict *verdict;
    struct candidate *candidate;
};

static void say(struct author *b, const char *fmt, ...) FORMAT(2, 3);

static void say(struct author *b, const char *fmt, ...)
{
    char line[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    b->ctx->say(b->ctx, line);
}

/* Grade one setting; *ret_us is 0 when it did not pass. */
static enum err_code try_knobs(struct author *b, const struct knobs *k, bool quick, double *ret_us,
                               struct err *err)
{
    bool cuda = b->ctx->target == TARGET_CUDA;
    struct str text;
    if ((cuda ? template_cuda : template_cpu)(b->arena, b->plan, k, b->ctx->task->name, &text,
                                              err) != OK)
        return err->code;
    struct candidate *c = b->candidate;
    *c = (struct candidate){ .target = b->ctx->target, .author = "playbook", .n_files = 1 };
    c->file[0] = (struct source_file){ cuda ? "forward.cu" : "forward.c", text };
    candidate_seal(c);
    *ret_us = 0;
    if (b->ctx->grade(b->ctx, c, quick, b->verdict, err) != OK)
        return err->code;
    if (verdict_right(b->verdict))
        *ret_us = b->verdict->time_us[ARM_CANDIDATE].median;
    return OK;
}

static bool applies(const struct author *b, const struct knob_row *row)
{
    bool product = false, reduction = false;
    for (int i = 0; i < b->plan->n_kernels; i++) {
        product = product || b->plan->kernel[i].kind == KERNEL_MATMUL;
        reduction = reduction || b->plan->kernel[i].kind == KERNEL_ROWS;
    }
    if (row->products && !product)
        return false;
    if (row->rows && !reduction)
        return false;
    return b->ctx->target == TARGET_CUDA ? row->cuda : row->cpu;
}

/* One knob after the other, keeping what is faster: 2% is noise. */
static enum err_code tune(struct author *b, struct knobs best, double best_us, struct err *err)
{
    for (size_t r = 0; r < COUNT(space); r++) {
        if (!applies(b, &space[r]))
            continue;
        for (const int *v = space[r].value; *v >= 0 && b->ctx->seconds_left > 0; v++) {
            struct knobs k = best;
            double us = 0;
            *(int *)(void *)((char *)&k + space[r].offset) = *v;
            if (try_knobs(b, &k, true, &us, err) != OK)
                return err->code;
            if (us > 0 && us < best_us * 0.98) {
                say(b, "%s %d: %.1f us, was %.1f", space[r].name, *v, us, best_us);
                best = k;
                best_us = us;
            }
        }
    }
    return OK;
}

static enum err_code author(struct author *b, struct err *err)
{
    struct graph graph;
    double us = 0;
    if (b->ctx->graph == NULL)
        return err_raise(err, ERR_TASK, "the model could not be traced");
    if (graph_parse(b->arena, b->ctx->graph, &graph, err) != OK ||
        lower_graph(b->arena, &graph, &b->program, err) != OK)
        return err->code;
    rewrite_program(&b->program);
    if (plan_program(&b->program, b->ctx->target == TARGET_CUDA, b->plan, err) != OK)
        return err->code;
    say(b, "%d operators become %d kernels", graph.n_nodes, b->plan->n_kernels);
    if (try_knobs(b, &knobs_safe, true, &us, err) != OK)
        return err->code;
    if (us == 0) {
        say(b, "the safe variant is %s: %s", verdict_status_name(b->verdict->status),
            b->verdict->reason);
        us = 1e300;
    }
    return tune(b, knobs_safe, us, err);
}

static enum err_code run(struct author_ctx *ctx, struct err *err)
{
    own_arena arena = { 0 };
    struct author b = { .ctx = ctx, .arena = &arena };
    b.plan = arena_new(&arena, struct plan, 1);
    b.verdict = arena_new(&arena, struct verdict, 1);
    b.candidate = arena_new(&arena, struct candidate, 1);
    return author(&b, err);
}

const struct author_ops playbook_author = { "playbook",
                                            "the built-in author: rewrites, templates, tuning",
                                            run };
