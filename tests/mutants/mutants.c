/* How many wrong kernels does the exam let through, and how many right ones does it refuse?
 *
 *   mutants cpu|cuda PYTHON FOLDER [--count N] [--honest N] [--seed S] [--part I/N] [--only
 * KERNEL,KERNEL]
 *           [--log FILE] [--table FILE]
 *
 * Every kernel of FOLDER (tests/mutants) for the target is compiled once, as all its mutants
 * (mutant.h). Number i of a seed is always the same kernel, fault and place, so a run that was
 * interrupted goes on where its log ends. A mutant is dead when it fails, or passes in a lower
 * precision class than the right kernel. Who lives through the check is run beside the right kernel
 * on 1,000 inputs: with the same bits on all of them it is no mutant. Who lives still is graded in
 * full.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/json.h"
#include "core/own.h"
#include "cuda_agent.h"
#include "harness/exam.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/stop.h"

#define MAGIC "ca-mutant-here!"
#define INPUTS 1000
#define RULES_MAX 96
#define KERNELS_MAX 32
#define HOLDS 3 /* how often the right kernel is graded to know its class */

struct mutant { /* as in mutant.h */
    char magic[16];
    int64_t kind, a, b;
};

struct rule {
    int64_t kind, a[2], b[2];
    char name[48];
    bool honest;
    int64_t made, equivalent, by_check, by_class, by_time, lived; /* lived: of honest, refused */
};

struct kernel {
    const char *name; /* without ending */
    struct candidate c;
    const char *task;
    int64_t below; /* integers of the equivalence check */
    struct rule rule[RULES_MAX];
    size_t n_rules, n_honest;
    enum precision class; /* of the right kernel */
    const char *so;
    struct str bytes; /* of so */
    size_t at;        /* of struct mutant in it */
};

struct run {
    struct arena a;
    enum target target;
    const char *python, *dir, *work; /* work: for the objects */
    int64_t count, honest, seed, part, parts;
    const char *only;
    FILE *log;
    bool *done[2]; /* by number: what the log holds already */
    struct kernel kernel[KERNELS_MAX];
    size_t n_kernels;
};

/* ---- what can be done to a kernel: its first lines ---- */

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

static enum err_code kernels_read(struct run *r, struct err *err)
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

/* ---- number i of a seed ---- */

static uint64_t mix(uint64_t x) /* splitmix64 */
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

struct pick {
    size_t kernel;
    struct rule *rule;
    struct mutant m;
};

/* The kernels take turns, and within one its rules. */
static struct pick pick(struct run *r, bool honest, int64_t i)
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

/* ---- the same bits on 1,000 inputs? ---- */

struct device { /* how to get at the memory that a kernel reads */
    int (*alloc)(void **, size_t);
    int (*copy)(void *, const void *, size_t, int); /* cudaMemcpyDefault: 4 */
    int (*wait)(void);
};

static int host_alloc(void **p, size_t n)
{
    *p = aligned_alloc(256, (n + 255) / 256 * 256);
    return *p == NULL;
}

static int host_copy(void *to, const void *from, size_t n, int kind)
{
    (void)kind;
    memcpy(to, from, n);
    return 0;
}

static int host_wait(void)
{
    return 0;
}

/* The runtime that the kernel itself was linked with. */
static bool device_of(void *so, enum target target, struct device *d)
{
    *d = (struct device){ host_alloc, host_copy, host_wait };
    if (target == TARGET_CPU)
        return true;
    *(void **)&d->alloc = dlsym(so, "cudaMalloc");
    *(void **)&d->copy = dlsym(so, "cudaMemcpy");
    *(void **)&d->wait = dlsym(so, "cudaDeviceSynchronize");
    return d->alloc != NULL && d->copy != NULL && d->wait != NULL;
}

struct stage {
    struct device d;
    struct ca_call call;
    struct ca_value value[3][8];
    void *host[3][8]; /* in, param, out */
    const struct sig_list *list[3];
    int64_t below;
    uint64_t random;
};

static double normal(uint64_t *state)
{
    double u = ((double)(mix(++*state) >> 11) + 0.5) / 9007199254740992.0;
    double v = (double)(mix(++*state) >> 11) / 9007199254740992.0;
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

__extension__ typedef _Float16 half;

static uint16_t half_of(float f)
{
    half h = (half)f;
    uint16_t u;
    memcpy(&u, &h, 2);
    return u;
}

static uint16_t brain_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static void fill(struct stage *s, const struct value_sig *v, void *host, double scale)
{
    for (int64_t at = 0, i = 0; at < v->bytes; i++) {
        float f = (float)(normal(&s->random) * scale);
        char *to = (char *)host + at;
        if (v->dtype == CA_F32) {
            memcpy(to, &f, 4);
            at += 4;
        } else if (v->dtype == CA_I64) {
            int64_t n = (int64_t)(mix(++s->random) % (uint64_t)(s->below > 0 ? s->below : 2));
            memcpy(to, &n, 8);
            at += 8;
        } else {
            uint16_t h = v->dtype == CA_F16 ? half_of(f) : brain_of(f);
            memcpy(to, &h, 2);
            at += 2;
        }
    }
}

static bool lay(struct stage *s, int which, const struct sig_list *list, struct ca_list *ret)
{
    s->list[which] = list;
    for (size_t i = 0; i < list->n && i < 8; i++) {
        const struct value_sig *v = &list->v[i];
        void *data = NULL;
        s->host[which][i] = malloc((size_t)v->bytes);
        if (s->host[which][i] == NULL || s->d.alloc(&data, (size_t)v->bytes) != 0)
            return false;
        s->value[which][i] = (struct ca_value){ .name = v->name,
                                                .kind = (enum ca_kind)v->kind,
                                                .dtype = (enum ca_dtype)v->dtype,
                                                .rank = v->rank,
                                                .alias = -1,
                                                .shape = v->shape,
                                                .stride = v->stride,
                                                .data = data };
    }
    *ret = (struct ca_list){ (int)list->n, s->value[which] };
    return true;
}

static bool send_values(struct stage *s, int which, double scale)
{
    for (size_t i = 0; i < s->list[which]->n; i++) {
        const struct value_sig *v = &s->list[which]->v[i];
        if (which == 2)
            memset(s->host[2][i], 0x3c, (size_t)v->bytes);
        else
            fill(s, v, s->host[which][i], scale);
        if (s->d.copy(s->value[which][i].data, s->host[which][i], (size_t)v->bytes, 4) != 0)
            return false;
    }
    return true;
}

typedef int (*forward_fn)(const struct ca_call *);
typedef int (*setup_fn)(const struct ca_call *, void **);

/* The outputs of one call over the same bits as before, appended to `all`. */
static bool answer(struct stage *s, forward_fn forward, char *all)
{
    for (size_t i = 0; i < s->list[2]->n; i++)
        if (s->d.copy(s->value[2][i].data, s->host[2][i], (size_t)s->list[2]->v[i].bytes, 4) != 0)
            return false;
    if (forward(&s->call) != 0 || s->d.wait() != 0)
        return false;
    for (size_t i = 0; i < s->list[2]->n; i++) {
        size_t bytes = (size_t)s->list[2]->v[i].bytes;
        if (s->d.copy(all, s->value[2][i].data, bytes, 4) != 0)
            return false;
        all += bytes;
    }
    return true;
}

static size_t out_bytes(const struct signature *sig)
{
    size_t n = 0;
    for (size_t i = 0; i < sig->out.n; i++)
        n += (size_t)sig->out.v[i].bytes;
    return n;
}

/* *inside: the kernel's struct mutant in this process. */
static bool same_bits(struct stage *s, void *so, const struct mutant *m, size_t bytes)
{
    static const double scales[] = { 1, 0.1, 10, 100 };
    forward_fn forward;
    setup_fn setup;
    struct mutant *inside = dlsym(so, "ca_mutant");
    char *right = malloc(bytes), *got = malloc(bytes);
    bool same = inside != NULL && right != NULL && got != NULL;
    *(void **)&forward = dlsym(so, "ca_forward");
    *(void **)&setup = dlsym(so, "ca_setup");
    for (int i = 0; i < INPUTS && same; i++) {
        same = (i % 50 != 0 || send_values(s, 1, 1)) && send_values(s, 0, scales[i % 4]) &&
               send_values(s, 2, 1);
        for (int side = 0; side < 2 && same; side++) {
            inside->kind = side == 0 ? 0 : m->kind;
            inside->a = m->a;
            inside->b = m->b;
            if (i % 50 == 0 && setup != NULL)
                same = setup(&s->call, &s->call.state) == 0 && s->d.wait() == 0;
            same = same && answer(s, forward, side == 0 ? right : got);
        }
        same = same && memcmp(right, got, bytes) == 0;
    }
    free(right);
    free(got);
    return same;
}

static enum err_code equivalent(struct run *r, struct exam *x, const struct kernel *k,
                                const struct mutant *m, bool *ret, struct err *err)
{
    const struct signature *sig = exam_signature(x);
    struct stage *s = calloc(1, sizeof *s);
    void *so = dlopen(k->so, RTLD_NOW | RTLD_LOCAL);
    size_t (*keep)(const struct ca_call *), (*scratch)(const struct ca_call *);
    if (s == NULL || so == NULL || !device_of(so, r->target, &s->d)) {
        free(s);
        return err_raise(err, ERR_SYSTEM, "load '%s': %s", k->so, dlerror());
    }
    s->below = k->below;
    s->random = (uint64_t)r->seed;
    s->call = (struct ca_call){ .version = CA_VERSION,
                                .device = r->target == TARGET_CUDA ? 0 : -1,
                                .threads = 2,
                                .sm_count = 132 };
    bool good = lay(s, 0, &sig->in, &s->call.in) && lay(s, 1, &sig->param, &s->call.param) &&
                lay(s, 2, &sig->out, &s->call.out);
    *(void **)&keep = dlsym(so, "ca_keep");
    *(void **)&scratch = dlsym(so, "ca_scratch");
    s->call.keep_bytes = keep ? keep(&s->call) : 0;
    s->call.scratch_bytes = scratch ? scratch(&s->call) : 0;
    good = good && s->d.alloc(&s->call.keep, s->call.keep_bytes + 256) == 0 &&
           s->d.alloc(&s->call.scratch, s->call.scratch_bytes + 256) == 0;
    *ret = good && same_bits(s, so, m, out_bytes(sig));
    free(s); /* the buffers go with the process: few mutants come this far */
    return good ? OK : err_raise(err, ERR_SYSTEM, "lay out the inputs of '%s'", k->name);
}

/* ---- one mutant ---- */

static enum err_code object_of(struct run *r, const struct kernel *k, const struct mutant *m,
                               const char **ret, struct err *err)
{
    own_mem char *bytes = malloc(k->bytes.len);
    if (bytes == NULL)
        return err_sys(err, "copy an object");
    memcpy(bytes, k->bytes.ptr, k->bytes.len);
    memcpy(bytes + k->at, m, sizeof *m);
    *ret = path_join(&r->a, r->work, "mutant.so");
    return file_write(*ret, (struct str){ bytes, k->bytes.len }, 0755, err);
}

static enum err_code graded(struct run *r, struct exam *x, const struct kernel *k,
                            const struct mutant *m, enum grade_step until, struct verdict *v,
                            struct err *err)
{
    const char *so = NULL;
    struct grade_options opt = { .until = until, .seconds = 3 };
    if (object_of(r, k, m, &so, err) != OK)
        return err->code;
    return exam_grade_object(x, &k->c, so, &opt, v, err);
}

static const char *const ends[] = { "check", "class", "equivalent", "time",
                                    "LIVES", "right", "REFUSED" };
enum end { BY_CHECK, BY_CLASS, EQUIVALENT, BY_TIME, LIVES, RIGHT, REFUSED };

static enum err_code judge(struct run *r, struct exam *x, const struct kernel *k,
                           const struct pick *p, struct verdict *v, enum end *ret, struct err *err)
{
    bool same = false;
    if (graded(r, x, k, &p->m, GRADE_VERIFY, v, err) != OK)
        return err->code;
    *ret = p->rule->honest ? REFUSED : BY_CHECK;
    if (v->status != VERDICT_PASS)
        return OK;
    *ret = p->rule->honest ? RIGHT : BY_CLASS;
    if (p->rule->honest || v->precision > k->class)
        return OK;
    *ret = EQUIVALENT;
    if (equivalent(r, x, k, &p->m, &same, err) != OK || same)
        return err->code;
    if (graded(r, x, k, &p->m, GRADE_TIME, v, err) != OK)
        return err->code;
    *ret = v->status != VERDICT_PASS || v->precision > k->class ? BY_TIME : LIVES;
    return OK;
}

static void count(struct rule *r, enum end end)
{
    r->made++;
    r->equivalent += end == EQUIVALENT;
    r->by_check += end == BY_CHECK;
    r->by_class += end == BY_CLASS;
    r->by_time += end == BY_TIME;
    r->lived += end == LIVES || end == REFUSED;
}

/* ---- one kernel ---- */

static enum err_code built(struct run *r, struct exam *x, struct kernel *k, struct err *err)
{
    struct toolchain tools = { 0 };
    struct build_result b;
    const json_t *device = json_object_get(exam_hello(x), "device");
    const char *arch = json_string_value(json_object_get(device, "arch"));
    toolchain_find(&r->a, NULL, &tools);
    struct build_request req = { &k->c, &tools, arch ? arch : "", 120000, NULL };
    if (build_run(&r->a, &req, &b, err) != OK)
        return err->code;
    if (!b.ok)
        return err_raise(err, ERR_STATE, "'%s' does not compile: %s", k->name, b.reason);
    k->so = b.so_path;
    if (file_read(&r->a, b.so_path, 64 << 20, &k->bytes, err) != OK)
        return err->code;
    const char *at = memmem(k->bytes.ptr, k->bytes.len, MAGIC, sizeof MAGIC);
    if (at == NULL)
        return err_raise(err, ERR_STATE, "'%s' holds no place for its mutants", k->name);
    k->at = (size_t)(at - k->bytes.ptr);
    return OK;
}

static enum err_code class_of(struct run *r, struct exam *x, struct kernel *k, struct verdict *v,
                              struct err *err)
{
    const struct mutant right = { MAGIC, 0, 0, 0 };
    for (int i = 0; i < HOLDS; i++) {
        if (graded(r, x, k, &right, GRADE_VERIFY, v, err) != OK)
            return err->code;
        if (v->status != VERDICT_PASS)
            return err_raise(err, ERR_STATE, "the right '%s' is refused: %s", k->name, v->reason);
        k->class = v->precision > k->class ? v->precision : k->class;
    }
    return OK;
}

static bool mine(const struct run *r, bool honest, int64_t i, size_t kernel)
{
    return (size_t)i % r->n_kernels == kernel && i % r->parts == r->part && !r->done[honest][i];
}

static enum err_code kernel_run(struct run *r, size_t at, struct exam *x, struct verdict *v,
                                struct err *err)
{
    struct kernel *k = &r->kernel[at];
    if (built(r, x, k, err) != OK || class_of(r, x, k, v, err) != OK)
        return err->code;
    int64_t t0 = clock_ms(), n = 0;
    for (int honest = 0; honest < 2; honest++)
        for (int64_t i = 0; i < (honest ? r->honest : r->count); i++) {
            if (!mine(r, honest, i, at))
                continue;
            struct pick p = pick(r, honest, i);
            enum end end;
            if (stop_check(err) != OK)
                return err->code;
            if (judge(r, x, k, &p, v, &end, err) != OK)
                return err_within(err, "%s %s %lld %lld", k->name, p.rule->name, (long long)p.m.a,
                                  (long long)p.m.b);
            count(p.rule, end);
            n++;
            char line[512];
            snprintf(line, sizeof line, "%s %lld %s %s %lld %lld %s %s %s\n",
                     honest ? "honest" : "fault", (long long)i, k->name, p.rule->name,
                     (long long)p.m.a, (long long)p.m.b, ends[end], precision_name(v->precision),
                     verdict_status_name(v->status));
            fputs(line, r->log);
            fflush(r->log);
            if (end == LIVES || end == REFUSED)
                printf("  %s  %s\n", line, v->reason);
        }
    printf("%-16s %5lld in %6.1f s, class %s\n", k->name, (long long)n,
           (double)(clock_ms() - t0) / 1e3, precision_name(k->class));
    fflush(stdout);
    return OK;
}

static bool nothing_left(const struct run *r, size_t at)
{
    for (int honest = 0; honest < 2; honest++)
        for (int64_t i = 0; i < (honest ? r->honest : r->count); i++)
            if (mine(r, honest, i, at))
                return false;
    return true;
}

/* A comma between names; NULL: all. */
static bool among(const char *list, const char *name)
{
    struct str rest = str_from(list), one = { 0 };
    while (list != NULL && str_cut(&rest, ',', &one))
        if (str_eq(one, str_from(name)))
            return true;
    return list == NULL;
}

static enum err_code kernel_open_and_run(struct run *r, size_t at, struct err *err)
{
    struct task task;
    struct exam *x = NULL;
    struct exam_config cfg = { .target = r->target, .python = r->python };
    struct verdict *v = calloc(1, sizeof *v);
    if (!among(r->only, r->kernel[at].name) || nothing_left(r, at)) {
        free(v);
        return OK;
    }
    enum err_code code = v == NULL ? err_sys(err, "allocate a verdict") : OK;
    if (code == OK)
        code = task_read(&r->a, r->kernel[at].task, &task, err);
    if (code == OK)
        code = exam_open(&cfg, &task, &x, err);
    if (code == OK)
        code = kernel_run(r, at, x, v, err);
    exam_close(x);
    free(v);
    return code;
}

/* ---- the log and the table ---- */

static enum err_code log_open(struct run *r, const char *path, struct err *err)
{
    struct str text = { 0 }, line = { 0 };
    for (int honest = 0; honest < 2; honest++)
        r->done[honest] = arena_new(&r->a, bool, (size_t)(honest ? r->honest : r->count) + 1);
    if (path_exists(path) && file_read(&r->a, path, 256 << 20, &text, err) != OK)
        return err->code;
    while (str_cut(&text, '\n', &line)) {
        char what[16], kernel[64], name[64], end[16];
        long long i, a, b;
        if (sscanf(str_z(&r->a, line), "%15s %lld %63s %63s %lld %lld %15s", what, &i, kernel, name,
                   &a, &b, end) != 7)
            continue;
        bool honest = strcmp(what, "honest") == 0;
        if (i < 0 || i >= (honest ? r->honest : r->count) || r->done[honest][i])
            continue;
        struct pick p = pick(r, honest, i);
        if (strcmp(p.rule->name, name) != 0 || p.m.a != a || p.m.b != b)
            return err_raise(err, ERR_FORMAT, "'%s' is the log of another seed or of other kernels",
                             path);
        for (size_t e = 0; e < COUNT(ends); e++)
            if (strcmp(ends[e], end) == 0)
                count(p.rule, (enum end)e);
        r->done[honest][i] = true;
    }
    r->log = fopen(path, "a");
    return r->log != NULL ? OK : err_sys(err, "open '%s'", path);
}

static void row_print(FILE *f, const char *name, const struct rule *t)
{
    int64_t real = t->made - t->equivalent;
    if (t->made > 0)
        fprintf(f, "| %s | %lld | %lld | %lld | %lld | %lld | %lld | %.2f%% |\n", name,
                (long long)t->made, (long long)t->equivalent, (long long)t->by_check,
                (long long)t->by_class, (long long)t->by_time, (long long)t->lived,
                real > 0 ? 100.0 * (double)t->lived / (double)real : 0);
}

static void add(struct rule *to, const struct rule *r)
{
    to->made += r->made;
    to->equivalent += r->equivalent;
    to->by_check += r->by_check;
    to->by_class += r->by_class;
    to->by_time += r->by_time;
    to->lived += r->lived;
}

/* One row for each name, over all kernels. */
static void table(struct run *r, FILE *f, bool honest, struct rule *all)
{
    fprintf(f, honest
                   ? "| right way | made | | | | | refused | share |\n"
                   : "| fault | made | same bits | dead by the check | by a lower class | by the "
                     "timed windows | alive | share |\n");
    fprintf(f, "|---|---|---|---|---|---|---|---|\n");
    for (size_t k = 0; k < r->n_kernels; k++)
        for (size_t i = 0; i < r->kernel[k].n_rules; i++) {
            const struct rule *first = &r->kernel[k].rule[i];
            struct rule sum = { 0 };
            bool seen = false;
            for (size_t o = 0; o < r->n_kernels; o++)
                for (size_t j = 0; j < r->kernel[o].n_rules; j++) {
                    const struct rule *it = &r->kernel[o].rule[j];
                    if (it->honest != honest || strcmp(it->name, first->name) != 0)
                        continue;
                    seen = seen || o < k || (o == k && j < i);
                    add(&sum, it);
                }
            if (first->honest != honest || seen)
                continue;
            row_print(f, first->name, &sum);
            add(all, &sum);
        }
    row_print(f, "**all**", all);
}

static int64_t report(struct run *r, const char *path)
{
    struct rule faults = { 0 }, honest = { 0 };
    FILE *f = path ? fopen(path, "w") : stdout;
    if (f == NULL)
        f = stdout;
    table(r, f, false, &faults);
    fprintf(f, "\n");
    table(r, f, true, &honest);
    if (f != stdout)
        fclose(f);
    int64_t real = faults.made - faults.equivalent;
    printf("%lld of %lld mutants live, %lld of %lld right variants are refused\n",
           (long long)faults.lived, (long long)real, (long long)honest.lived,
           (long long)honest.made);
    int64_t bad = faults.lived + honest.lived;
    printf("%lld passed, %lld failed\n", (long long)(real + honest.made - bad), (long long)bad);
    return bad;
}

/* ---- the command line ---- */

static enum err_code number(const char *text, int64_t *ret, struct err *err)
{
    return str_int(str_from(text), 0, INT64_MAX, ret, err);
}

static enum err_code option(struct run *r, const char *name, const char *value, const char **log,
                            const char **table_path, struct err *err)
{
    long long part, parts;
    if (strcmp(name, "--count") == 0)
        return number(value, &r->count, err);
    if (strcmp(name, "--honest") == 0)
        return number(value, &r->honest, err);
    if (strcmp(name, "--seed") == 0)
        return number(value, &r->seed, err);
    if (strcmp(name, "--part") == 0 && sscanf(value, "%lld/%lld", &part, &parts) == 2 &&
        part >= 1 && part <= parts) {
        r->part = part - 1;
        r->parts = parts;
        return OK;
    }
    if (strcmp(name, "--only") == 0)
        r->only = value;
    else if (strcmp(name, "--log") == 0)
        *log = value;
    else if (strcmp(name, "--table") == 0)
        *table_path = value;
    else
        return err_raise(err, ERR_USAGE, "'%s %s'", name, value);
    return OK;
}

static enum err_code all(struct run *r, struct err *err)
{
    for (size_t i = 0; i < r->n_kernels; i++)
        if (kernel_open_and_run(r, i, err) != OK)
            return err_within(err, "'%s'", r->kernel[i].name);
    return OK;
}

int main(int argc, char **argv)
{
    struct run *r = calloc(1, sizeof *r);
    struct err err = { 0 };
    const char *log = NULL, *table_path = NULL;
    if (r == NULL || argc < 4 || argc % 2 != 0) {
        fprintf(stderr, "usage: mutants cpu|cuda PYTHON FOLDER [--count N] [--honest N] [--seed S] "
                        "[--part I/N] [--only KERNEL,KERNEL] [--log FILE] [--table FILE]\n");
        return 2;
    }
    r->target = strcmp(argv[1], "cuda") == 0 ? TARGET_CUDA : TARGET_CPU;
    r->python = argv[2];
    r->dir = arena_fmt(&r->a, "%s/%s", argv[3], argv[1]);
    r->count = 200;
    r->honest = 50;
    r->parts = 1;
    enum err_code code = OK;
    for (int i = 4; i + 1 < argc && code == OK; i += 2)
        code = option(r, argv[i], argv[i + 1], &log, &table_path, &err);
    stop_install();
    if (code == OK)
        code = dir_temp(&r->a, "/tmp", "ca-mutants", &r->work, &err);
    if (code == OK)
        code = kernels_read(r, &err);
    if (code == OK)
        code = log_open(r, log ? log : path_join(&r->a, r->work, "log"), &err);
    if (code == OK)
        code = all(r, &err);
    struct err ignored = { 0 };
    if (r->work != NULL && dir_remove(r->work, &ignored) != OK)
        fprintf(stderr, "mutants: %s\n", ignored.text);
    if (code != OK) {
        fprintf(stderr, "mutants: %s\n%s%s\n", err.text, err.hint[0] ? "  hint: " : "", err.hint);
        printf("0 passed, 1 failed\n");
        return 2;
    }
    return report(r, table_path) == 0 ? 0 : 1;
}
