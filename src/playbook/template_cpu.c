/* C with OpenMP: rows in parallel, columns in vectors. */
#include <ctype.h>
#include <stdio.h>

#include "playbook/emit.h"
#include "playbook/knobs.h"

#define CACHE_MAX 32768 /* floats of a row that stay on a thread's stack */
#define BLOCK 512       /* columns that are reduced together */

struct writer {
    struct arena *arena;
    struct buf *out;
    const struct plan *plan;
    const struct knobs *knobs;
    size_t printed; /* of e.outer */
};

static void signature(struct writer *w, struct emit *e, const char *name)
{
    const struct buffer *home = &w->plan->buffer[e->kernel->buffer];
    buf_addf(w->out, "static void %s(%s *restrict out", name, emit_c_type(false, home->dtype_name));
    for (int i = 0; i < e->kernel->n_more; i++)
        buf_addf(w->out, ", %s *restrict out%d",
                 emit_c_type(false, w->plan->buffer[e->kernel->more_buffer[i]].dtype_name), i + 1);
    for (int i = 0; i < e->n_args; i++)
        buf_addf(w->out, ", const %s *restrict %s", e->arg[i].c_type, e->arg[i].name);
    buf_addz(w->out, ")\n{\n");
}

static void outer_so_far(struct writer *w, struct emit *e, struct buf *to)
{
    buf_add(to, (struct str){ e->outer.ptr + w->printed, e->outer.len - w->printed });
    w->printed = e->outer.len;
}

static const char *step_text(struct arena *a, enum reduce_kind r, const char *sum,
                             const char *value)
{
    if (r == REDUCE_SUM)
        return arena_fmt(a, "%s += %s;\n", sum, value);
    return arena_fmt(a, "%s = %s %c %s ? %s : %s;\n", sum, value, r == REDUCE_MAX ? '>' : '<', sum,
                     value, sum);
}

static const char *clause(enum reduce_kind r)
{
    return r == REDUCE_SUM ? "+" : r == REDUCE_MAX ? "max" : "min";
}

static void stages(struct writer *w, struct emit *e, struct buf *to)
{
    for (int s = 0; s < e->n_stages; s++) {
        enum reduce_kind r = w->plan->p->term[e->stage_term[s]].reduce;
        const char *value = emit_stage(e, s), *sum = arena_fmt(w->arena, "s%d", s);
        outer_so_far(w, e, to);
        buf_addf(to,
                 "float %s = %s;\n#pragma omp simd reduction(%s : %s)\nfor (long long c = 0; c < "
                 "%lld; c++) {\n",
                 sum, emit_reduce_init(r), clause(r), sum, (long long)e->kernel->cols);
        buf_add(to, (struct str){ e->body.ptr, e->body.len });
        buf_addz(to, step_text(w->arena, r, sum, value));
        buf_addz(to, "}\n");
        emit_stage_done(e);
    }
}

static void store(struct writer *w, struct emit *e, struct buf *to)
{
    const struct buffer *home = &w->plan->buffer[e->kernel->buffer];
    const char *value = emit_store(e, home->dtype, emit_sink(e, 0));
    const char *at = affine_text(w->arena, emit_out_offset(e));
    outer_so_far(w, e, to);
    if (e->kernel->row_only) {
        buf_addf(to, "out[%s] = %s;\n", at, value);
        for (int i = 0; i < e->kernel->n_more; i++) {
            const char *next = emit_store(e, w->plan->buffer[e->kernel->more_buffer[i]].dtype,
                                          emit_sink(e, i + 1));
            outer_so_far(w, e, to);
            buf_addf(to, "out%d[%s] = %s;\n", i + 1, at, next);
        }
        return;
    }
    bool alone = e->n_stages == 0 && e->kernel->rows < 8;
    buf_addf(to, "#pragma omp %ssimd\nfor (long long c = 0; c < %lld; c++) {\n",
             alone ? "parallel for " : "", (long long)e->kernel->cols);
    buf_add(to, (struct str){ e->body.ptr, e->body.len });
    buf_addf(to, "out[%s] = %s;\n}\n", at, value);
}

static void rows(struct writer *w, const struct kernel *k, const char *name)
{
    struct emit e;
    struct buf inside = { .arena = w->arena, .max = TEMPLATE_MAX };
    emit_init(&e, w->arena, w->plan, k, false, 1);
    bool cache = e.n_cached > 0 && k->cols <= CACHE_MAX;
    e.cache_at = cache ? "[c]" : NULL;
    w->printed = 0;
    for (int i = 0; cache && i < e.n_cached; i++)
        buf_addf(&inside, "float e%d[%lld];\n", i, (long long)k->cols);
    stages(w, &e, &inside);
    store(w, &e, &inside);
    signature(w, &e, name);
    bool alone = e.n_stages == 0 && k->rows < 8 && !k->row_only;
    const char *share = "#pragma omp parallel for schedule(static)\n";
    if (w->knobs->chunk > 0)
        share =
            arena_fmt(w->arena, "#pragma omp parallel for schedule(static, %d)\n", w->knobs->chunk);
    buf_addf(w->out, "%sfor (long long row = 0; row < %lld; row++) {\n", alone ? "" : share,
             (long long)k->rows);
    buf_add(w->out, (struct str){ inside.ptr, inside.len });
    buf_addz(w->out, "}\n}\n\n");
}

/* The reduced dimension is the one whose neighbours lie together: its loop is the inner one. */
static void columns_along(struct writer *w, const struct kernel *k, struct emit *e,
                          const char *value)
{
    enum reduce_kind r = w->plan->p->term[k->sink].reduce;
    const struct buffer *home = &w->plan->buffer[e->kernel->buffer];
    buf_addf(w->out,
             "#pragma omp parallel for collapse(2) schedule(static)\nfor (long long o = 0; o < "
             "%lld; o++)\nfor (long long c = 0; c < %lld; c++) {\nfloat sum = %s;\n"
             "#pragma omp simd reduction(%s : sum)\nfor (long long r = 0; r < %lld; r++) {\n",
             (long long)k->outer, (long long)k->inner, emit_reduce_init(r), clause(r),
             (long long)k->red);
    buf_add(w->out, (struct str){ e->outer.ptr, e->outer.len });
    buf_add(w->out, (struct str){ e->body.ptr, e->body.len });
    buf_add(w->out, str_from(step_text(w->arena, r, "sum", value)));
    buf_addf(w->out, "}\nout[o * %lld + c] = %s;\n}\n}\n\n", (long long)k->inner,
             emit_store(e, home->dtype, "sum"));
}

static void columns(struct writer *w, const struct kernel *k, const char *name)
{
    struct emit e;
    emit_init(&e, w->arena, w->plan, k, false, 1);
    enum reduce_kind r = w->plan->p->term[k->sink].reduce;
    const struct buffer *home = &w->plan->buffer[k->buffer];
    const char *value = emit_stage(&e, 0);
    signature(w, &e, name);
    if (e.along_red > e.along_col) {
        columns_along(w, k, &e, value);
        return;
    }
    buf_addf(w->out,
             "#pragma omp parallel for collapse(2) schedule(static)\nfor (long long o = 0; o < "
             "%lld; o++)\n"
             "for (long long from = 0; from < %lld; from += %d) {\nfloat sum[%d];\n"
             "const long long to = from + %d < %lld ? from + %d : %lld;\n"
             "for (int i = 0; i < %d; i++)\nsum[i] = %s;\nfor (long long r = 0; r < %lld; r++) {\n"
             "#pragma omp simd\nfor (long long c = from; c < to; c++) {\n",
             (long long)k->outer, (long long)k->inner, BLOCK, BLOCK, BLOCK, (long long)k->inner,
             BLOCK, (long long)k->inner, BLOCK, emit_reduce_init(r), (long long)k->red);
    buf_add(w->out, (struct str){ e.outer.ptr, e.outer.len });
    buf_add(w->out, (struct str){ e.body.ptr, e.body.len });
    buf_addz(w->out, step_text(w->arena, r, "sum[c - from]", value));
    buf_addf(w->out,
             "}\n}\nfor (long long c = from; c < to; c++)\nout[o * %lld + c] = %s;\n}\n}\n\n",
             (long long)k->inner, emit_store(&e, home->dtype, "sum[c - from]"));
}

static void call(struct writer *w, struct buf *to, const struct kernel *k, int index)
{
    if (k->kind == KERNEL_MATMUL) {
        struct gemm g;
        template_gemm(w->plan, k, &g);
        buf_addf(to,
                 "for (long long b = 0; b < %lld; b++)\ncblas_sgemm(CblasRowMajor, %s, %s, %lld, "
                 "%lld, %lld, 1.0f, "
                 "%s + b * %lld, %lld, %s + b * %lld, %lld, 0.0f, %s + b * %lld, %lld);\n",
                 (long long)g.batch, g.trans[0] ? "CblasTrans" : "CblasNoTrans",
                 g.trans[1] ? "CblasTrans" : "CblasNoTrans", (long long)g.m, (long long)g.n,
                 (long long)g.k, template_pointer(w->arena, w->plan, g.leaf[0], "float"),
                 (long long)g.step[0], (long long)g.ld[0],
                 template_pointer(w->arena, w->plan, g.leaf[1], "float"), (long long)g.step[1],
                 (long long)g.ld[1], template_out_pointer(w->arena, w->plan, k->buffer, "float"),
                 (long long)(g.m * g.n), (long long)g.n);
        return;
    }
    struct emit e;
    emit_init(&e, w->arena, w->plan, k, false, 1);
    for (int s = 0; s < e.n_stages; s++) {
        emit_stage(&e, s);
        emit_stage_done(&e);
    }
    if (k->kind == KERNEL_COLUMNS)
        emit_stage(&e, 0);
    else
        for (int i = 0; i <= k->n_more; i++)
            emit_sink(&e, i);
    const char *c_type = emit_c_type(false, w->plan->buffer[k->buffer].dtype_name);
    buf_addf(to, "%s(%s", template_name(w->arena, k, index),
             template_out_pointer(w->arena, w->plan, k->buffer, c_type));
    for (int i = 0; i < k->n_more; i++)
        buf_addf(to, ", %s",
                 template_out_pointer(
                     w->arena, w->plan, k->more_buffer[i],
                     emit_c_type(false, w->plan->buffer[k->more_buffer[i]].dtype_name)));
    for (int i = 0; i < e.n_args; i++)
        buf_addf(to, ", %s", template_pointer(w->arena, w->plan, e.arg[i].leaf, e.arg[i].c_type));
    buf_addz(to, ");\n");
}

static void calls(struct writer *w, bool setup)
{
    for (int i = 0; i < w->plan->n_kernels; i++)
        if (w->plan->kernel[i].setup == setup)
            call(w, w->out, &w->plan->kernel[i], i);
}

static bool uses(const struct plan *plan, const char *dtype, enum kernel_kind kind)
{
    for (int i = 0; i < plan->n_kernels; i++)
        if (dtype == NULL && plan->kernel[i].kind == kind)
            return true;
    for (int i = 0; dtype != NULL && i < plan->p->graph->n_values; i++)
        if (strcmp(plan->p->graph->value[i].dtype_name, dtype) == 0)
            return true;
    return false;
}

/* glibc has vector variants of these (libmvec, 4 ulp) but declares them only under fast-math,
 * whose other licences make infinities wrong. */
static void vector_math(struct buf *b, const struct program *p)
{
    static const struct {
        const char *name, *glibc; /* from which version on */
    } all[] = { { "expf", "2, 22" },   { "logf", "2, 22" },   { "sinf", "2, 22" },
                { "cosf", "2, 22" },   { "tanhf", "2, 35" },  { "erff", "2, 35" },
                { "log1pf", "2, 35" }, { "expm1f", "2, 35" }, { "log2f", "2, 35" },
                { "exp2f", "2, 35" },  { "tanf", "2, 35" },   { "sinhf", "2, 35" },
                { "coshf", "2, 35" },  { "atanf", "2, 35" },  { "asinf", "2, 35" },
                { "acosf", "2, 35" } };
    for (size_t i = 0; i < COUNT(all); i++) {
        bool used = false;
        for (int t = 0; t < p->n && !used; t++) {
            const char *at =
                p->term[t].kind == TERM_POINT ? strstr(p->term[t].form, all[i].name) : NULL;
            used = at != NULL && at[strlen(all[i].name)] == '(' &&
                   (at == p->term[t].form || !isalnum((unsigned char)at[-1]));
        }
        if (used)
            buf_addf(b,
                     "#if defined __x86_64__ && __GLIBC_PREREQ(%s)\n#pragma omp declare simd "
                     "notinbranch\nfloat %s(float);\n#endif\n",
                     all[i].glibc, all[i].name);
    }
}

static const char bf16_helpers[] =
    "static inline float bf16_float(uint16_t b)\n{\n    const uint32_t bits = (uint32_t)b << 16;\n "
    "   float f;\n"
    "    memcpy(&f, &bits, sizeof f);\n    return f;\n}\n\n"
    "/* To nearest even; NaN stays NaN. */\nstatic inline uint16_t float_bf16(float f)\n{\n    "
    "uint32_t bits;\n"
    "    memcpy(&bits, &f, sizeof bits);\n    const uint32_t nan = (bits & 0x7fffffffu) > "
    "0x7f800000u ? 0x400000u : 0;\n"
    "    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16 | nan >> 16);\n}\n\n";

/* Branchless: gcc 12 has no vector code for _Float16. */
static const char f16_helpers[] =
    "static inline float bits_float(uint32_t bits)\n{\n    float f;\n"
    "    memcpy(&f, &bits, sizeof f);\n    return f;\n}\n\n"
    "static inline uint32_t float_bits(float f)\n{\n    uint32_t bits;\n"
    "    memcpy(&bits, &f, sizeof bits);\n    return bits;\n}\n\n"
    "/* The exponent moves by 112; infinity and NaN get float's largest. */\n"
    "static inline float f16_float(uint16_t h)\n{\n"
    "    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, size = (uint32_t)(h & 0x7fffu) << "
    "13;\n"
    "    const uint32_t finite = float_bits(bits_float(size) * 0x1p112f);\n"
    "    const uint32_t other = size | 0x7f800000u;\n"
    "    return bits_float((size >= 0x0f800000u ? other : finite) | sign);\n}\n\n"
    "/* To nearest even; small ones by adding 0.5, whose last bit is worth what theirs is. */\n"
    "static inline uint16_t float_f16(float f)\n{\n"
    "    const uint32_t bits = float_bits(f), sign = bits & 0x80000000u, size = bits ^ sign;\n"
    "    const uint32_t normal = (size - 0x38000000u + 0xfffu + (size >> 13 & 1u)) >> 13;\n"
    "    const uint32_t small = float_bits(bits_float(size) + 0.5f) - 0x3f000000u;\n"
    "    const uint32_t large = size > 0x7f800000u ? 0x7e00u : 0x7c00u;\n"
    "    const uint32_t half = size >= 0x47800000u ? large : size < 0x38800000u ? small : normal;\n"
    "    return (uint16_t)(half | sign >> 16);\n}\n\n";

enum err_code template_cpu(struct arena *a, const struct plan *plan, const struct knobs *k,
                           const char *task, struct str *ret, struct err *err)
{
    struct buf b = { .arena = a, .max = TEMPLATE_MAX };
    struct writer w = { a, &b, plan, k, 0 };
    template_head(&b, task, k->fast_math);
    buf_addz(&b, "#include <math.h>\n#include <stdbool.h>\n#include <string.h>\n");
    if (uses(plan, NULL, KERNEL_MATMUL))
        buf_addz(&b, "\n#include <cblas.h>\n");
    if (k->simd_bits > 0)
        buf_addf(&b, "\n#pragma GCC target(\"prefer-vector-width=%d\")\n", k->simd_bits);
    if (k->unroll > 1)
        buf_addz(&b, "\n#pragma GCC optimize(\"unroll-loops\")\n");
    buf_addz(&b, "\n");
    vector_math(&b, plan->p);
    if (uses(plan, "bf16", KERNEL_ROWS))
        buf_addz(&b, bf16_helpers);
    if (uses(plan, "f16", KERNEL_ROWS))
        buf_addz(&b, f16_helpers);
    for (int i = 0; i < plan->n_kernels; i++) {
        const struct kernel *kernel = &plan->kernel[i];
        if (kernel->kind == KERNEL_MATMUL)
            continue;
        template_describe(&b, plan, kernel);
        if (kernel->kind == KERNEL_ROWS)
            rows(&w, kernel, template_name(a, kernel, i));
        else
            columns(&w, kernel, template_name(a, kernel, i));
    }
    template_tail(&b, plan, "");
    if (plan->keep_bytes > 0) {
        buf_addz(&b, "int ca_setup(const struct ca_call *c, void **state)\n{\n*state = NULL;\n");
        calls(&w, true);
        buf_addz(&b, "return 0;\n}\n\n");
    }
    buf_addz(&b, "int ca_forward(const struct ca_call *c)\n{\n");
    calls(&w, false);
    buf_addz(&b, "return 0;\n}\n");
    return template_done(a, &b, ret, err);
}
