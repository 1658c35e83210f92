/* What can be done to a kernel (its first lines say), and which of it is number i of a seed. */
#include "mutants/mutants.h"

#include <stdio.h>

#include "sys/file.h"

static void rule_add(struct kernel *k, bool honest, const struct rule *r)
{
    if (k->n_rules < RULES_MAX) {
        k->rule[k->n_rules] = *r;
        k->rule[k->n_rules++].honest = honest;
        k->n_honest += honest;
    }
}

static int64_t log2_of(int64_t n)
{
    int64_t bits = 0;
    while (n >> (bits + 1) > 0)
        bits++;
    return bits;
}

#define FAULT false, 0, 0, 0, 0, 0, 0
#define HONEST true, 0, 0, 0, 0, 0, 0

static void frame_rules(struct kernel *k, int64_t rows, int64_t length)
{
    int64_t wrap = log2_of((rows - 1) * length);
    const struct rule all[] = {
        { 1, { 1, rows / 2 }, { 0, 0 }, "last_rows_dropped", FAULT },
        { 2, { 0, rows - 1 }, { 0, 0 }, "row_skipped", FAULT },
        { 3, { 2, rows < 64 ? rows : 64 }, { 0, 63 }, "one_row_in", FAULT },
        { 4, { 0, rows - 1 }, { 0, 0 }, "stale_row", FAULT },
        { 5, { 2, 7 }, { 0, 0 }, "stale_call", FAULT },
        { 6, { 0, rows - 2 }, { 0, 0 }, "rows_exchanged", FAULT },
        { 7, { 3, wrap }, { 0, 0 }, "index_wraps", FAULT },
        { 8, { 0, rows * length - 2 }, { 0, 0 }, "neighbour", FAULT },
        { 9, { 0, rows - 1 }, { 0, rows - 1 }, "row_from_row", FAULT },
        { 100, { 0, 0 }, { 0, 0 }, "rows_backward", HONEST },
        { 101, { 1, rows }, { 0, 0 }, "rows_by_chunks", HONEST },
        { 102, { 1, rows }, { 0, 0 }, "rows_by_stride", HONEST },
    };
    for (size_t i = 0; i < COUNT(all); i++)
        rule_add(k, all[i].honest, &all[i]);
}

/* half: two-byte values forgive what is below their own rounding. dot: a product, for which tensor
 * cores round. */
static void sum_rules(struct kernel *k, int64_t n, bool half, bool dot)
{
    const struct rule all[] = {
        { 20, { 1, 97 }, { 0, 0 }, "half_sum", FAULT },
        { 21, { 0, n - 1 }, { 0, 0 }, "term_missing", FAULT },
        { 22, { 0, n - 1 }, { 0, 0 }, "term_twice", FAULT },
        { 23, { 2, 64 }, { 0, 0 }, "tail_missing", FAULT },
        { 24, { 3, half ? 6 : 10 }, { 0, 0 }, "low_precision", FAULT },
        { 25, { 2, half ? 60 : 3000 }, { 0, 0 }, "lost_update", FAULT },
        { 26, { 0, 1000 }, { 0, 0 }, "uninitialised", FAULT },
        { 27, { 8, n / 2 }, { 0, 0 }, "no_second_pass", FAULT },
        { 28, { 2, half ? 4 : 10 }, { 0, 0 }, "rounded_input", FAULT },
        { 29, { 0, 0 }, { 0, 0 }, "shared_scratch", FAULT },
        { 103, { 2, 64 }, { 0, 0 }, "partial_sums", HONEST },
        { 104, { 0, 0 }, { 0, 0 }, "sum_backward", HONEST },
        { 105, { 0, 0 }, { 0, 0 }, "sum_double", HONEST },
        { 106, { 2, 64 }, { 0, 0 }, "sum_pairwise", HONEST },
        { 108, { 0, 0 }, { 0, 0 }, "sum_kahan", HONEST },
        { 109, { 0, 0 }, { 0, 0 }, "sum_sequential", HONEST },
        { 107, { 10, 10 }, { 0, 0 }, "tensor_core", HONEST },
    };
    for (size_t i = 0; i < COUNT(all) - !dot; i++)
        rule_add(k, all[i].honest, &all[i]);
}

static bool rule_read(struct kernel *k, const char *line)
{
    struct rule r = { 0 };
    char how[16], task[64];
    long long kind, v[4];
    if (sscanf(line, "// %15s %lld %47s %lld %lld %lld %lld", how, &kind, r.name, &v[0], &v[1],
               &v[2], &v[3]) == 7) {
        r.kind = kind;
        for (int i = 0; i < 2; i++) {
            r.a[i] = v[i];
            r.b[i] = v[2 + i];
        }
        rule_add(k, strcmp(how, "honest") == 0, &r);
        return true;
    }
    if (sscanf(line, "// rows %lld %lld", &v[0], &v[1]) == 2)
        frame_rules(k, v[0], v[1]);
    else if (sscanf(line, "// sums %lld", &v[0]) == 1)
        sum_rules(k, v[0], false, false);
    else if (sscanf(line, "// halfs %lld", &v[0]) == 1)
        sum_rules(k, v[0], true, false);
    else if (sscanf(line, "// dots %lld", &v[0]) == 1)
        sum_rules(k, v[0], false, true);
    else if (sscanf(line, "// below %lld", &v[0]) == 1)
        k->below = v[0];
    else if (sscanf(line, "// task %63s", task) != 1)
        return false;
    return true;
}

static enum err_code kernel_read(struct run *r, const char *file, struct kernel *k, struct err *err)
{
    struct arena *a = &r->a;
    struct str text, line = { 0 };
    const char *shared = r->target == TARGET_CUDA ? "mutant.cuh" : "mutant.h";
    struct candidate *c = &k->c;
    if (file_read(a, path_join(a, r->dir, file), 1 << 20, &text, err) != OK ||
        file_read(a, path_join(a, r->dir, shared), 1 << 20, &c->file[1].text, err) != OK)
        return err->code;
    k->name = arena_fmt(a, "%.*s", (int)(strrchr(file, '.') - file), file);
    k->task = arena_fmt(a, "%s/../tasks/%s.py", r->dir, k->name);
    c->target = r->target;
    c->author = "mutant";
    c->n_files = 2;
    c->file[0] = (struct source_file){ r->target == TARGET_CUDA ? "main.cu" : "main.c", text };
    c->file[1].name = shared;
    candidate_seal(c);
    while (str_cut(&text, '\n', &line) && str_starts(line, S("//")))
        if (!rule_read(k, str_z(a, line)))
            return err_raise(err, ERR_FORMAT, "'%s': '%.*s' says nothing", file, STR_FMT(line));
    return OK;
}

enum err_code kernels_read(struct run *r, struct err *err)
{
    static const char *const endings[] = { ".c", ".cu", NULL };
    struct str *names;
    size_t n = 0;
    if (dir_list(&r->a, r->dir, endings, &names, &n, err) != OK)
        return err->code;
    for (size_t i = 0; i < n && r->n_kernels < KERNELS_MAX; i++)
        if (kernel_read(r, str_z(&r->a, names[i]), &r->kernel[r->n_kernels++], err) != OK)
            return err->code;
    return OK;
}

uint64_t mix(uint64_t x) /* splitmix64 */
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static int64_t within(uint64_t random, const int64_t range[2])
{
    return range[0] + (int64_t)(random % (uint64_t)(range[1] - range[0] + 1));
}

/* The kernels take turns, and within one its rules. */
struct pick pick(struct run *r, bool honest, int64_t i)
{
    struct pick p = { .kernel = (size_t)i % r->n_kernels };
    struct kernel *k = &r->kernel[p.kernel];
    size_t turn = (size_t)i / r->n_kernels, n = honest ? k->n_honest : k->n_rules - k->n_honest;
    size_t which = turn % n;
    for (size_t at = 0; at < k->n_rules; at++)
        if (k->rule[at].honest == honest && which-- == 0)
            p.rule = &k->rule[at];
    uint64_t random = mix((uint64_t)r->seed * 1000003u + (uint64_t)i * 2 + honest);
    p.m = (struct mutant){ MAGIC, p.rule->kind, within(mix(random), p.rule->a),
                           within(mix(random + 1), p.rule->b) };
    return p;
}
