#include "playbook/plan.h"

#include <stdio.h>

#include "playbook/emit.h"

#define ALIGN 256
#define INNER_MIN 64   /* a pointwise kernel's inner loop */
#define LONG_ROW 16384 /* a row worth cutting when there are few */
#define PIECE_CUDA 2048
#define PIECE_CPU 65536
#define DEPTH_MAX 4096

struct planner {
    struct plan *plan;
    struct program *p;
    bool cuda;
    struct err *err;
    int depth;
};

static enum err_code materialise(struct planner *b, int t, int out);

static bool is_memory(const struct program *p, int t)
{
    return p->term[t].kind == TERM_LEAF;
}

/* Visit what t is made of, down to memory; stops where `stop` says so. */
typedef bool (*visit)(struct planner *b, int t, void *to);

static void walk(struct planner *b, int t, visit f, void *to)
{
    if (is_memory(b->p, t) || b->depth > DEPTH_MAX || !f(b, t, to))
        return;
    b->depth++;
    for (int i = 0; i < b->p->term[t].n_args; i++)
        walk(b, b->p->term[t].arg[i], f, to);
    b->depth--;
}

struct found {
    int at[256];
    int n;
};

static void found_add(struct found *f, int t)
{
    for (int i = 0; i < f->n; i++)
        if (f->at[i] == t)
            return;
    if (f->n < (int)COUNT(f->at))
        f->at[f->n++] = t;
}

static bool see_matmul(struct planner *b, int t, void *to)
{
    if (b->p->term[t].kind != TERM_MATMUL)
        return true;
    found_add(to, t);
    return false;
}

static bool see_reduce(struct planner *b, int t, void *to)
{
    if (b->p->term[t].kind != TERM_REDUCE)
        return true;
    found_add(to, t);
    return false;
}

/* Leading and trailing extents of a reduction over the last dimensions; false for others. */
static bool trailing(const struct gshape *s, unsigned mask, int64_t *rows, int64_t *cols)
{
    bool inside = false;
    *rows = *cols = 1;
    for (int d = 0; d < s->rank; d++) {
        if (s->dim[d] == 1)
            continue;
        bool masked = mask & 1u << d;
        if (inside && !masked)
            return false;
        inside = inside || masked;
        *(masked ? cols : rows) *= s->dim[d];
    }
    return true;
}

static bool from_input(struct planner *b, int t)
{
    const struct term *x = &b->p->term[t];
    if (x->kind == TERM_LEAF) {
        if (x->leaf < 0)
            return b->plan->buffer[-1 - x->leaf].home != BUFFER_KEEP;
        return b->p->graph->value[x->leaf].source == GRAPH_FROM_INPUT;
    }
    for (int i = 0; i < x->n_args; i++)
        if (from_input(b, x->arg[i]))
            return true;
    return false;
}

static int element_bytes(enum graph_dtype d, const char *name)
{
    if (d == GRAPH_INT || d == GRAPH_BOOL)
        return str_eq(str_from(name), S("i64"))   ? 8
               : str_eq(str_from(name), S("i32")) ? 4
               : d == GRAPH_BOOL                  ? 1
                                                  : 8;
    return d == GRAPH_F16 || d == GRAPH_BF16 ? 2 : 4;
}

/* The formula of t as it is now: terms that become memory later do not change it. Terms below map
 * to their copies, so that what is shared stays shared. */
static int copied(struct planner *b, int t, int *map)
{
    struct term x = b->p->term[t];
    if (x.kind == TERM_LEAF)
        return t;
    if (map[t] >= 0)
        return map[t];
    for (int i = 0; i < x.n_args; i++)
        x.arg[i] = copied(b, x.arg[i], map);
    return map[t] = term_append(b->p, &x);
}

static int *new_map(struct planner *b)
{
    int *map = arena_new(b->p->arena, int, (size_t)b->p->n);
    for (int i = 0; i < b->p->n; i++)
        map[i] = -1;
    return map;
}

/* A new buffer for term t. */
static int home_of(struct planner *b, int t, int out, bool setup)
{
    struct plan *plan = b->plan;
    struct term formula = b->p->term[t];
    struct buffer home = { .count = gshape_count(&formula.shape),
                           .out = out,
                           .name = formula.name };
    home.home = out >= 0 ? BUFFER_OUT : setup ? BUFFER_KEEP : BUFFER_SCRATCH;
    home.dtype =
        formula.dtype == GRAPH_INT || formula.dtype == GRAPH_BOOL ? formula.dtype : GRAPH_F32;
    home.dtype_name = home.dtype == GRAPH_INT ? "i64" : home.dtype == GRAPH_BOOL ? "bool" : "f32";
    if (out >= 0) {
        const struct gvalue *v = &b->p->graph->value[b->p->graph->output[out]];
        home.dtype = v->dtype;
        home.dtype_name = v->dtype_name;
    } else if (plan->half_scratch && (formula.dtype == GRAPH_F16 || formula.dtype == GRAPH_BF16)) {
        home.dtype = formula.dtype;
        home.dtype_name = formula.dtype == GRAPH_F16 ? "f16" : "bf16";
    }
    int64_t *room = home.home == BUFFER_KEEP ? &plan->keep_bytes : &plan->scratch_bytes;
    if (out < 0) {
        home.offset = *room;
        *room +=
            (home.count * element_bytes(home.dtype, home.dtype_name) + ALIGN - 1) / ALIGN * ALIGN;
    }
    plan->buffer[plan->n_buffers] = home;
    return plan->n_buffers++;
}

static void becomes_memory(struct planner *b, int t, int buffer)
{
    struct term *x = &b->p->term[t];
    *x = (struct term){ .kind = TERM_LEAF,
                        .shape = x->shape,
                        .dtype = b->plan->buffer[buffer].dtype,
                        .name = x->name,
                        .leaf = -1 - buffer };
}

/* A home for term t; its formula moves into the kernel and t itself becomes memory. */
static enum err_code add_kernel(struct planner *b, int t, int out, struct kernel *k)
{
    struct plan *plan = b->plan;
    if (plan->n_kernels == KERNELS_MAX || plan->n_buffers == KERNELS_MAX)
        return err_raise(b->err, ERR_LIMIT, "more than %d kernels", KERNELS_MAX);
    k->setup = out < 0 && !from_input(b, t);
    k->buffer = home_of(b, t, out, k->setup);
    k->sink = copied(b, t, new_map(b));
    k->name = b->p->term[t].name ? b->p->term[t].name : "value";
    plan->kernel[plan->n_kernels++] = *k;
    becomes_memory(b, t, k->buffer);
    return OK;
}

bool plan_strides(const struct plan *plan, int term, int *ret_leaf, int64_t stride[GRAPH_RANK_MAX])
{
    const struct term *t = &plan->p->term[term];
    if (t->kind == TERM_PERMUTE) {
        int64_t inner[GRAPH_RANK_MAX];
        if (!plan_strides(plan, t->arg[0], ret_leaf, inner))
            return false;
        for (int d = 0; d < t->shape.rank; d++)
            stride[d] = inner[t->perm[d]];
        return true;
    }
    if (t->kind != TERM_LEAF)
        return false;
    *ret_leaf = term;
    int64_t step = 1;
    for (int d = t->shape.rank - 1; d >= 0; d--) {
        stride[d] = t->leaf >= 0 ? plan->p->graph->value[t->leaf].stride[d] : step;
        step *= t->shape.dim[d];
    }
    return true;
}

/* The 16-bit type that the model's own operands have; on the cpu products are fp32. */
static enum graph_dtype product_dtype(struct planner *b, int t)
{
    for (int i = 0; b->cuda && i < 2; i++) {
        int a = b->p->term[t].arg[i];
        while (b->p->term[a].kind == TERM_PERMUTE)
            a = b->p->term[a].arg[0];
        enum graph_dtype d = b->p->term[a].dtype;
        if (b->p->term[a].kind == TERM_LEAF && (d == GRAPH_F16 || d == GRAPH_BF16))
            return d;
    }
    return GRAPH_F32;
}

/* A library can read it: one of the last two strides is 1, and the type is the product's. */
static bool fit_for_library(struct planner *b, int t, enum graph_dtype want)
{
    int64_t s[GRAPH_RANK_MAX];
    int leaf = -1, rank = b->p->term[t].shape.rank;
    if (!plan_strides(b->plan, t, &leaf, s))
        return false;
    const struct gshape *shape = &b->p->term[t].shape;
    bool row = s[rank - 1] == 1 && s[rank - 2] >= shape->dim[rank - 1];
    bool column = s[rank - 2] == 1 && s[rank - 1] >= shape->dim[rank - 2];
    return (row || column) && b->p->term[leaf].dtype == want;
}

static enum err_code matmul(struct planner *b, int t, int out)
{
    enum graph_dtype type = product_dtype(b, t);
    for (int i = 0; i < 2; i++) {
        int a = b->p->term[t].arg[i];
        if (fit_for_library(b, a, type))
            continue;
        /* A permutation of something to compute: compute that, keep the permutation. */
        while (b->p->term[a].kind == TERM_PERMUTE && !is_memory(b->p, b->p->term[a].arg[0]))
            a = b->p->term[a].arg[0];
        if (!is_memory(b->p, a))
            b->p->term[a].dtype = type;
        if (materialise(b, a, -1) != OK)
            return b->err->code;
        if (fit_for_library(b, b->p->term[t].arg[i], type))
            continue;
        struct term copy = { .kind = TERM_POINT,
                             .shape = b->p->term[b->p->term[t].arg[i]].shape,
                             .dtype = type,
                             .arg = { b->p->term[t].arg[i] },
                             .n_args = 1,
                             .form = "$a",
                             .name = "packed" };
        int c = term_append(b->p, &copy);
        b->p->term[t].arg[i] = c;
        if (materialise(b, c, -1) != OK)
            return b->err->code;
    }
    struct kernel k = { .kind = KERNEL_MATMUL };
    bool direct = out >= 0;
    if (direct) {
        enum graph_dtype d = b->p->graph->value[b->p->graph->output[out]].dtype;
        direct = d == GRAPH_F32 || (b->cuda && (d == GRAPH_F16 || d == GRAPH_BF16));
    }
    if (direct || out < 0)
        return add_kernel(b, t, out, &k);
    if (add_kernel(b, t, -1, &k) != OK)
        return b->err->code;
    struct term copy = { .kind = TERM_POINT,
                         .shape = b->p->term[t].shape,
                         .dtype = GRAPH_F32,
                         .arg = { t },
                         .n_args = 1,
                         .form = "$a",
                         .name = "stored" };
    return materialise(b, term_append(b->p, &copy), out);
}

/* Few long rows would leave most of the machine idle: reduce pieces first, then the pieces. */
static int cut(struct planner *b, int t, int64_t rows, int64_t cols)
{
    struct term r = b->p->term[t];
    int64_t piece = b->cuda ? PIECE_CUDA : PIECE_CPU, enough = b->cuda ? 512 : 8;
    if (rows >= enough || cols < LONG_ROW || cols < 2 * piece)
        return t;
    while (piece > 1 && cols % piece != 0)
        piece--;
    if (piece < 64)
        return t;
    struct gshape pieces = { 3, { rows, cols / piece, piece } },
                  flat = { 2, { rows, cols / piece } };
    int first = term_reduce(b->p, r.reduce, term_reshape(b->p, r.arg[0], &pieces), 4u);
    int second = term_reduce(b->p, r.reduce, term_reshape(b->p, first, &flat), 2u);
    b->p->term[first].name = "partial";
    struct gshape kept = r.shape;
    int whole = term_reshape(b->p, second, &kept);
    b->p->term[whole].name = r.name;
    return whole;
}

static void row_space(const struct gshape *s, int64_t *rows, int64_t *cols)
{
    *rows = *cols = 1;
    for (int d = s->rank - 1; d >= 0; d--)
        *(*cols < INNER_MIN && *rows == 1 ? cols : rows) *= s->dim[d];
}

static enum err_code pointwise(struct planner *b, int t, int out)
{
    struct kernel k = { .kind = KERNEL_ROWS };
    row_space(&b->p->term[t].shape, &k.rows, &k.cols);
    return add_kernel(b, t, out, &k);
}

static enum err_code columns(struct planner *b, int t, int out)
{
    struct term r = b->p->term[t];
    const struct gshape *s = &b->p->term[r.arg[0]].shape;
    struct kernel k = { .kind = KERNEL_COLUMNS, .outer = 1, .red = 1, .inner = 1 };
    int state = 0; /* before, in, after the reduced block */
    for (int d = 0; d < s->rank; d++) {
        bool masked = r.mask & 1u << d;
        if (s->dim[d] == 1)
            continue;
        if (masked && state == 2)
            return err_raise(b->err, ERR_TASK,
                             "the playbook does not know reductions over scattered dimensions yet");
        state = masked ? 1 : state == 1 ? 2 : state;
        *(masked ? &k.red : state == 2 ? &k.inner : &k.outer) *= s->dim[d];
    }
    return add_kernel(b, t, out, &k);
}

/* Can t and all its reductions live in one kernel over rows x cols? */
static bool fits(struct planner *b, int t, int64_t rows, int64_t cols, bool row_only)
{
    struct kernel k = {
        .kind = KERNEL_ROWS, .rows = rows, .cols = cols, .row_only = row_only, .sink = t
    };
    return emit_possible(b->plan, &k);
}

/* Reductions below t, innermost chains first, become memory. */
static enum err_code settle_reductions(struct planner *b, int t)
{
    struct found f = { .n = 0 };
    for (int i = 0; i < b->p->term[t].n_args; i++)
        walk(b, b->p->term[t].arg[i], see_reduce, &f);
    for (int i = 0; i < f.n; i++)
        if (!is_memory(b->p, f.at[i]) && materialise(b, f.at[i], -1) != OK)
            return b->err->code;
    return OK;
}

static enum err_code reduce(struct planner *b, int t, int out)
{
    struct term r = b->p->term[t];
    int64_t rows, cols;
    struct found inner = { .n = 0 };
    bool last = trailing(&b->p->term[r.arg[0]].shape, r.mask, &rows, &cols);
    walk(b, r.arg[0], see_reduce, &inner);
    if (last && (inner.n == 0 || !fits(b, t, rows, cols, true)) && rows > 0) {
        if (inner.n > 0 && settle_reductions(b, t) != OK)
            return b->err->code;
        int better = cut(b, t, rows, cols);
        if (better != t) {
            b->p->term[t] = b->p->term[better];
            return materialise(b, t, out);
        }
    } else if (!last && settle_reductions(b, t) != OK) {
        return b->err->code;
    }
    struct kernel k = { .kind = KERNEL_ROWS, .rows = rows, .cols = cols, .row_only = true };
    return last ? add_kernel(b, t, out, &k) : columns(b, t, out);
}

/* A pointwise term over reductions: one kernel where the rows agree. */
static enum err_code over_reductions(struct planner *b, int t, const struct found *f, int out)
{
    int64_t rows, cols, count = gshape_count(&b->p->term[t].shape);
    const struct term *r = &b->p->term[f->at[0]];
    if (trailing(&b->p->term[r->arg[0]].shape, r->mask, &rows, &cols) && cols > 1) {
        bool row_only = count == rows;
        bool long_few = rows < (b->cuda ? 64 : 2) && cols >= LONG_ROW;
        if ((row_only || count == rows * cols) && !long_few && fits(b, t, rows, cols, row_only)) {
            struct kernel k = {
                .kind = KERNEL_ROWS, .rows = rows, .cols = cols, .row_only = row_only
            };
            return add_kernel(b, t, out, &k);
        }
    }
    if (settle_reductions(b, t) != OK)
        return b->err->code;
    return pointwise(b, t, out);
}

static enum err_code materialise(struct planner *b, int t, int out)
{
    struct found f = { .n = 0 };
    if (is_memory(b->p, t)) {
        if (out < 0)
            return OK;
        struct term copy = { .kind = TERM_POINT,
                             .shape = b->p->term[t].shape,
                             .dtype = b->p->term[t].dtype,
                             .arg = { t },
                             .n_args = 1,
                             .form = "$a",
                             .name = "copied" };
        t = term_append(b->p, &copy);
    }
    if (b->p->term[t].kind == TERM_MATMUL)
        return matmul(b, t, out);
    walk(b, t, see_matmul, &f);
    for (int i = 0; i < f.n; i++)
        if (!is_memory(b->p, f.at[i]) && matmul(b, f.at[i], -1) != OK)
            return b->err->code;
    if (b->p->term[t].kind == TERM_REDUCE)
        return reduce(b, t, out);
    f.n = 0;
    walk(b, t, see_reduce, &f);
    return f.n > 0 ? over_reductions(b, t, &f, out) : pointwise(b, t, out);
}

/* ---- outputs that are one number a row of the same rows: one kernel reads these once ---- */

static int output_term(const struct program *p, int i)
{
    int t = p->output[i];
    while (p->term[t].kind == TERM_RESHAPE && !is_memory(p, p->term[t].arg[0]))
        t = p->term[t].arg[0]; /* the same elements in the same order */
    return t;
}

/* Is output i one result a row, over a reduction of rows x cols and no product? */
static bool one_a_row(struct planner *b, int i, int64_t *rows, int64_t *cols)
{
    int t = output_term(b->p, i);
    struct found reductions = { .n = 0 }, products = { .n = 0 };
    if (is_memory(b->p, t))
        return false;
    walk(b, t, see_matmul, &products);
    walk(b, t, see_reduce, &reductions);
    if (products.n > 0 || reductions.n == 0)
        return false;
    const struct term *r = &b->p->term[reductions.at[0]];
    return trailing(&b->p->term[r->arg[0]].shape, r->mask, rows, cols) && *cols > 1 &&
           *rows >= (b->cuda ? 512 : 8) && gshape_count(&b->p->term[t].shape) == *rows &&
           fits(b, t, *rows, *cols, true);
}

/* The outputs from `first` on that go with it; *k holds their terms, not yet copies of them. */
static void gather_rows(struct planner *b, int first, struct kernel *k, int out[SINKS_MORE])
{
    for (int i = first + 1; i < b->p->n_outputs && k->n_more < SINKS_MORE; i++) {
        int64_t rows, cols;
        if (!one_a_row(b, i, &rows, &cols) || rows != k->rows || cols != k->cols)
            continue;
        struct kernel with = *k;
        with.more_sink[with.n_more++] = output_term(b->p, i);
        if (!emit_possible(b->plan, &with))
            continue;
        out[k->n_more] = i;
        *k = with;
    }
}

static enum err_code rows_together(struct planner *b, int first, bool done[])
{
    struct kernel k = { .kind = KERNEL_ROWS, .row_only = true, .name = "rows" };
    int out[SINKS_MORE];
    if (!one_a_row(b, first, &k.rows, &k.cols))
        return OK;
    int t = k.sink = output_term(b->p, first);
    gather_rows(b, first, &k, out);
    if (k.n_more == 0)
        return OK;
    if (b->plan->n_kernels == KERNELS_MAX || b->plan->n_buffers + k.n_more >= KERNELS_MAX)
        return err_raise(b->err, ERR_LIMIT, "more than %d kernels", KERNELS_MAX);
    int *map = new_map(b), more[SINKS_MORE];
    k.buffer = home_of(b, t, first, false);
    k.sink = copied(b, t, map);
    for (int i = 0; i < k.n_more; i++) {
        more[i] = k.more_sink[i];
        k.more_buffer[i] = home_of(b, more[i], out[i], false);
        k.more_sink[i] = copied(b, more[i], map);
        done[out[i]] = true;
    }
    done[first] = true;
    b->plan->kernel[b->plan->n_kernels++] = k;
    becomes_memory(b, t, k.buffer);
    for (int i = 0; i < k.n_more; i++)
        if (!is_memory(b->p, more[i])) /* one term may be two outputs */
            becomes_memory(b, more[i], k.more_buffer[i]);
    return OK;
}

enum err_code plan_program(struct program *p, bool cuda, struct plan *ret, struct err *err)
{
    struct planner b = { .plan = ret, .p = p, .cuda = cuda, .err = err };
    *ret = (struct plan){ .p = p, .half_scratch = cuda };
    bool *done = arena_new(p->arena, bool, (size_t)p->n_outputs + 1);
    for (int i = 0; i < p->n_outputs; i++)
        if (!done[i] && rows_together(&b, i, done) != OK)
            return err->code;
    for (int i = 0; i < p->n_outputs; i++) {
        /* Two outputs may be one term: the second is a copy of the first. */
        if (!done[i] && materialise(&b, output_term(p, i), i) != OK)
            return err->code;
    }
    for (int i = 0; i < ret->n_kernels; i++) {
        const struct kernel *k = &ret->kernel[i];
        if (k->kind != KERNEL_MATMUL && !emit_possible(ret, k))
            return err_raise(err, ERR_TASK, "the playbook cannot put '%s' into a kernel", k->name);
    }
    return OK;
}
