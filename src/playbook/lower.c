/* ATen operators become terms. */
#include <math.h>
#include <stdio.h>

#include "playbook/term.h"

/* ---- making terms ---- */

/* The same formula twice is one term: a mean that a variance needs, too, is made once. */
static bool same_formula(const struct term *x, const struct term *y)
{
    struct term a = *x, b = *y;
    a.name = b.name = NULL;
    a.form = b.form = NULL;
    bool form = x->form == y->form || (x->form && y->form && strcmp(x->form, y->form) == 0);
    return form && memcmp(&a, &b, sizeof a) == 0;
}

int term_add(struct program *p, const struct term *t)
{
    for (int i = p->n - 1; i >= 0 && t->kind != TERM_LEAF; i--)
        if (same_formula(&p->term[i], t))
            return i;
    return term_append(p, t);
}

int term_append(struct program *p, const struct term *t)
{
    if (p->n == p->cap) {
        int cap = p->cap ? 2 * p->cap : 256;
        struct term *all = arena_new(p->arena, struct term, (size_t)cap);
        if (p->n > 0)
            memcpy(all, p->term, (size_t)p->n * sizeof *all);
        p->term = all;
        p->cap = cap;
    }
    p->term[p->n] = *t;
    return p->n++;
}

int term_number(struct program *p, double x)
{
    struct term t = { .kind = TERM_NUMBER, .dtype = GRAPH_F32, .number = x };
    return term_add(p, &t);
}

int term_expand(struct program *p, int arg, const struct gshape *to)
{
    struct term t = {
        .kind = TERM_EXPAND, .shape = *to, .dtype = p->term[arg].dtype, .arg = { arg }, .n_args = 1
    };
    return gshape_equal(&p->term[arg].shape, to) ? arg : term_add(p, &t);
}

int term_reshape(struct program *p, int arg, const struct gshape *to)
{
    struct term t = {
        .kind = TERM_RESHAPE, .shape = *to, .dtype = p->term[arg].dtype, .arg = { arg }, .n_args = 1
    };
    return gshape_equal(&p->term[arg].shape, to) ? arg : term_add(p, &t);
}

int term_reduce(struct program *p, enum reduce_kind kind, int arg, unsigned mask)
{
    struct term t = { .kind = TERM_REDUCE,
                      .shape = p->term[arg].shape,
                      .dtype = GRAPH_F32,
                      .arg = { arg },
                      .n_args = 1,
                      .mask = mask,
                      .reduce = kind };
    for (int d = 0; d < t.shape.rank; d++)
        if (mask & 1u << d)
            t.shape.dim[d] = 1;
    return term_add(p, &t);
}

/* The shape that all arguments broadcast to. */
static struct gshape broadcast(const struct program *p, int n, const int *arg)
{
    struct gshape s = { 0 };
    for (int i = 0; i < n; i++)
        if (p->term[arg[i]].shape.rank > s.rank)
            s.rank = p->term[arg[i]].shape.rank;
    for (int d = 0; d < s.rank; d++)
        s.dim[d] = 1;
    for (int i = 0; i < n; i++) {
        const struct gshape *a = &p->term[arg[i]].shape;
        for (int d = 0; d < a->rank; d++) {
            int64_t *to = &s.dim[s.rank - a->rank + d];
            if (a->dim[d] != 1)
                *to = a->dim[d];
        }
    }
    return s;
}

static enum graph_dtype joined(const struct program *p, int n, const int *arg)
{
    bool number = false, all_bool = true;
    for (int i = 0; i < n; i++) {
        const struct term *t = &p->term[arg[i]];
        if (t->dtype != GRAPH_INT && t->dtype != GRAPH_BOOL)
            return GRAPH_F32;
        number = number || t->dtype == GRAPH_INT;
        all_bool = all_bool && t->dtype == GRAPH_BOOL;
    }
    return number ? GRAPH_INT : all_bool ? GRAPH_BOOL : GRAPH_F32;
}

int term_point(struct program *p, const char *form, bool costly, int n, const int *arg)
{
    struct term t = { .kind = TERM_POINT,
                      .n_args = n,
                      .form = form,
                      .costly = costly,
                      .dtype = joined(p, n, arg),
                      .shape = broadcast(p, n, arg) };
    for (int i = 0; i < n; i++)
        t.arg[i] = term_expand(p, arg[i], &t.shape);
    return term_add(p, &t);
}

/* The same formula with another type. */
static int retyped(struct program *p, int t, enum graph_dtype dtype)
{
    struct term copy = p->term[t];
    copy.dtype = dtype;
    return term_add(p, &copy);
}

static int point1(struct program *p, const char *form, bool costly, int a)
{
    return term_point(p, form, costly, 1, &a);
}

static int point2(struct program *p, const char *form, int a, int b)
{
    int arg[] = { a, b };
    return term_point(p, form, false, 2, arg);
}

/* ---- the operators ---- */

struct lowering {
    struct program *p;
    const struct gnode *n;
    struct err *err;
};

/* Argument i as a term: a tensor, or a number. */
static int operand(struct lowering *l, int i)
{
    const struct garg *a = i < l->n->n_in ? &l->n->in[i] : NULL;
    if (a != NULL && a->kind == GARG_VALUE)
        return l->p->of_value[a->i];
    int t = term_number(l->p, garg_number(a, 0));
    bool whole = a != NULL && (a->kind == GARG_INT || a->kind == GARG_FLAG);
    return whole ? retyped(l->p, t, a->kind == GARG_FLAG ? GRAPH_BOOL : GRAPH_INT) : t;
}

static bool given(const struct lowering *l, int i)
{
    return i < l->n->n_in && l->n->in[i].kind != GARG_NONE;
}

static double number(const struct lowering *l, int i, double none)
{
    return i < l->n->n_in ? garg_number(&l->n->in[i], none) : none;
}

static const struct gvalue *result(const struct lowering *l, int i)
{
    return &l->p->graph->value[l->n->out[i]];
}

static int wrap(int64_t d, int rank)
{
    return (int)(d < 0 ? d + rank : d);
}

/* A list of dimensions as a mask; absent or empty: all. */
static unsigned dims_mask(const struct lowering *l, int i, int rank)
{
    const struct garg *a = i < l->n->n_in ? &l->n->in[i] : NULL;
    unsigned mask = 0;
    if (a != NULL && a->kind == GARG_INT)
        return 1u << wrap(a->i, rank);
    for (int k = 0; a != NULL && a->kind == GARG_LIST && k < a->n; k++)
        mask |= 1u << wrap(a->item[k].i, rank);
    return mask ? mask : (1u << rank) - 1;
}

static double mask_count(const struct gshape *s, unsigned mask)
{
    double n = 1;
    for (int d = 0; d < s->rank; d++)
        if (mask & 1u << d)
            n *= (double)s->dim[d];
    return n;
}

struct simple {
    const char *name, *form;
    int arity;
    bool costly;
};

static const struct simple simple[] = {
    { "neg", "-$a", 1, false },
    { "abs", "fabsf($a)", 1, false },
    { "relu", "($a < 0 ? 0 : $a)", 1, false },
    { "exp", "expf($a)", 1, true },
    { "exp2", "exp2f($a)", 1, true },
    { "expm1", "expm1f($a)", 1, true },
    { "log", "logf($a)", 1, true },
    { "log2", "log2f($a)", 1, true },
    { "log10", "log10f($a)", 1, true },
    { "log1p", "log1pf($a)", 1, true },
    { "sqrt", "sqrtf($a)", 1, false },
    { "rsqrt", "1.0f / sqrtf($a)", 1, false },
    { "reciprocal", "1.0f / $a", 1, false },
    { "tanh", "tanhf($a)", 1, true },
    { "sigmoid", "1.0f / (1.0f + expf(-$a))", 1, true },
    { "silu", "$a / (1.0f + expf(-$a))", 1, true },
    { "erf", "erff($a)", 1, true },
    { "sin", "sinf($a)", 1, true },
    { "cos", "cosf($a)", 1, true },
    { "tan", "tanf($a)", 1, true },
    { "atan", "atanf($a)", 1, true },
    { "asin", "asinf($a)", 1, true },
    { "acos", "acosf($a)", 1, true },
    { "sinh", "sinhf($a)", 1, true },
    { "cosh", "coshf($a)", 1, true },
    { "floor", "floorf($a)", 1, false },
    { "ceil", "ceilf($a)", 1, false },
    { "round", "rintf($a)", 1, false },
    { "trunc", "truncf($a)", 1, false },
    { "sign", "(float)(($a > 0) - ($a < 0))", 1, false },
    { "hardsigmoid", "fminf(fmaxf($a + 3.0f, 0.0f), 6.0f) / 6.0f", 1, false },
    { "hardswish", "$a * fminf(fmaxf($a + 3.0f, 0.0f), 6.0f) / 6.0f", 1, false },
    { "mul", "$a * $b", 2, false },
    { "div", "$a / $b", 2, false },
    { "maximum", "($a > $b ? $a : $b)", 2, false },
    { "minimum", "($a < $b ? $a : $b)", 2, false },
    { "atan2", "atan2f($a, $b)", 2, true },
    { "fmod", "fmodf($a, $b)", 2, true },
    { "where", "($a ? $b : $c)", 3, false },
};

static const struct simple predicates[] = {
    { "eq", "($a == $b)", 2, false },          { "ne", "($a != $b)", 2, false },
    { "lt", "($a < $b)", 2, false },           { "le", "($a <= $b)", 2, false },
    { "gt", "($a > $b)", 2, false },           { "ge", "($a >= $b)", 2, false },
    { "logical_and", "($a && $b)", 2, false }, { "logical_or", "($a || $b)", 2, false },
    { "logical_not", "!$a", 1, false },        { "bitwise_not", "!$a", 1, false },
    { "bitwise_and", "($a && $b)", 2, false }, { "bitwise_or", "($a || $b)", 2, false },
    { "isnan", "($a != $a)", 1, false },
};

static const struct simple *simple_find(const struct simple *rows, size_t n, struct str name)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(str_from(rows[i].name), name))
            return &rows[i];
    return NULL;
}

static int simple_term(struct lowering *l, const struct simple *s)
{
    int arg[3] = { 0 };
    for (int i = 0; i < s->arity; i++)
        arg[i] = operand(l, i);
    return term_point(l->p, s->form, s->costly, s->arity, arg);
}

static int power(struct lowering *l)
{
    int a = operand(l, 0);
    if (given(l, 1) && l->n->in[1].kind == GARG_VALUE) {
        int arg[] = { a, operand(l, 1) };
        return term_point(l->p, "powf($a, $b)", true, 2, arg);
    }
    double e = number(l, 1, 1);
    static const struct {
        double exponent;
        const char *form;
    } forms[] = { { 1, "$a" },          { 2, "$a * $a" },    { 3, "$a * $a * $a" },
                  { 0.5, "sqrtf($a)" }, { -1, "1.0f / $a" }, { -0.5, "1.0f / sqrtf($a)" } };
    for (size_t i = 0; i < COUNT(forms); i++)
        if (forms[i].exponent == e)
            return point1(l->p, forms[i].form, false, a);
    int arg[] = { a, term_number(l->p, e) };
    return term_point(l->p, "powf($a, $b)", true, 2, arg);
}

static int add_or_sub(struct lowering *l, const char *form)
{
    int b = operand(l, 1);
    double alpha = garg_number(gnode_kw(l->n, "alpha"), 1);
    if (alpha != 1)
        b = point2(l->p, "$a * $b", b, term_number(l->p, alpha));
    return point2(l->p, form, operand(l, 0), b);
}

static int clamp(struct lowering *l)
{
    int t = operand(l, 0);
    if (given(l, 1))
        t = point2(l->p, "($a < $b ? $b : $a)", t, operand(l, 1));
    if (given(l, 2))
        t = point2(l->p, "($a > $b ? $b : $a)", t, operand(l, 2));
    return t;
}

static int gelu(struct lowering *l)
{
    const struct garg *how = gnode_kw(l->n, "approximate");
    bool tanh_form = how != NULL && how->kind == GARG_TEXT && strcmp(how->text, "tanh") == 0;
    return point1(
        l->p,
        tanh_form ? "0.5f * $a * (1.0f + tanhf(0.7978845608f * ($a + 0.044715f * $a * $a * $a)))"
                  : "0.5f * $a * (1.0f + erff($a * 0.7071067812f))",
        true, operand(l, 0));
}

static int leaky_relu(struct lowering *l)
{
    return point2(l->p, "($a > 0 ? $a : $b * $a)", operand(l, 0),
                  term_number(l->p, number(l, 1, 0.01)));
}

static int elu(struct lowering *l)
{
    int arg[] = { operand(l, 0), term_number(l->p, number(l, 1, 1)),
                  term_number(l->p, number(l, 2, 1)), term_number(l->p, number(l, 3, 1)) };
    return term_point(l->p, "($a > 0 ? $c * $a : $c * $b * expm1f($a * $d))", true, 4, arg);
}

/* ---- reductions and what is made of them ---- */

/* keepdim false: the reduced dimensions go. */
static int drop_dims(struct lowering *l, int t, int out)
{
    return term_reshape(l->p, t, &result(l, out)->shape);
}

static int mean_of(struct program *p, int x, unsigned mask)
{
    double n = mask_count(&p->term[x].shape, mask);
    int sum = term_reduce(p, REDUCE_SUM, x, mask);
    return point2(p, "$a * $b", sum, term_number(p, 1 / n));
}

static int variance_of(struct program *p, int x, unsigned mask, double correction)
{
    double n = mask_count(&p->term[x].shape, mask);
    int d = point2(p, "$a - $b", x, mean_of(p, x, mask));
    int sum = term_reduce(p, REDUCE_SUM, point1(p, "$a * $a", false, d), mask);
    return point2(p, "$a * $b", sum, term_number(p, 1 / (n - correction)));
}

static int reduction(struct lowering *l, struct str name)
{
    int x = operand(l, 0);
    unsigned mask = dims_mask(l, 1, l->p->term[x].shape.rank);
    if (str_eq(name, S("mean")))
        return drop_dims(l, mean_of(l->p, x, mask), 0);
    enum reduce_kind kind = str_eq(name, S("amax")) || str_eq(name, S("max")) ? REDUCE_MAX
                            : str_eq(name, S("sum"))                          ? REDUCE_SUM
                                                                              : REDUCE_MIN;
    return drop_dims(l, term_reduce(l->p, kind, x, mask), 0);
}

static int vector_norm(struct lowering *l)
{
    int x = operand(l, 0);
    double ord = number(l, 1, 2);
    unsigned mask = dims_mask(l, 2, l->p->term[x].shape.rank);
    if (ord == 1)
        return drop_dims(
            l, term_reduce(l->p, REDUCE_SUM, point1(l->p, "fabsf($a)", false, x), mask), 0);
    if (isinf(ord))
        return drop_dims(
            l, term_reduce(l->p, REDUCE_MAX, point1(l->p, "fabsf($a)", false, x), mask), 0);
    if (ord != 2)
        return -1;
    int sum = term_reduce(l->p, REDUCE_SUM, point1(l->p, "$a * $a", false, x), mask);
    return drop_dims(l, point1(l->p, "sqrtf($a)", false, sum), 0);
}

static int softmax(struct lowering *l, bool logarithm)
{
    struct program *p = l->p;
    int x = operand(l, 0);
    unsigned mask = 1u << wrap((int64_t)number(l, 1, -1), p->term[x].shape.rank);
    int d = point2(p, "$a - $b", x, term_reduce(p, REDUCE_MAX, x, mask));
    int e = point1(p, "expf($a)", true, d);
    int sum = term_reduce(p, REDUCE_SUM, e, mask);
    if (logarithm)
        return point2(p, "$a - $b", d, point1(p, "logf($a)", true, sum));
    return point2(p, "$a * $b", e, point1(p, "1.0f / $a", false, sum));
}

/* (x - mean) rstd weight + bias, with mean and rstd over `mask`. */
static int normalise(struct program *p, int x, unsigned mask, double eps, int *ret_mean,
                     int *ret_rstd)
{
    *ret_mean = mean_of(p, x, mask);
    int v = variance_of(p, x, mask, 0);
    *ret_rstd = point1(p, "1.0f / sqrtf($a)", false, point2(p, "$a + $b", v, term_number(p, eps)));
    return point2(p, "$a * $b", point2(p, "$a - $b", x, *ret_mean), *ret_rstd);
}

static int affine(struct lowering *l, int y, int weight, int bias)
{
    if (given(l, weight))
        y = point2(l->p, "$a * $b", y, operand(l, weight));
    if (given(l, bias))
        y = point2(l->p, "$a + $b", y, operand(l, bias));
    return y;
}

static void set_result(struct lowering *l, int i, int t)
{
    if (i < l->n->n_out && l->n->out[i] >= 0)
        l->p->of_value[l->n->out[i]] = t;
}

static int layer_norm(struct lowering *l)
{
    int x = operand(l, 0), rank = l->p->term[x].shape.rank, mean, rstd;
    int k = l->n->in[1].kind == GARG_LIST ? l->n->in[1].n : 1;
    unsigned mask = ((1u << k) - 1) << (rank - k);
    int y = affine(l, normalise(l->p, x, mask, number(l, 4, 1e-5), &mean, &rstd), 2, 3);
    set_result(l, 1, mean);
    set_result(l, 2, rstd);
    return y;
}

/* (N, C, ...) as (N, G, C/G * rest): one row a group. */
static int group_norm(struct lowering *l)
{
    struct program *p = l->p;
    int x = operand(l, 0), mean, rstd;
    struct gshape whole = p->term[x].shape;
    int64_t groups = (int64_t)number(l, 6, 1);
    struct gshape rows = { 3,
                           { whole.dim[0], groups, gshape_count(&whole) / whole.dim[0] / groups } };
    int y = normalise(p, term_reshape(p, x, &rows), 4u, number(l, 7, 1e-5), &mean, &rstd);
    y = term_reshape(p, y, &whole);
    struct gshape channel = { whole.rank, { 0 } };
    for (int d = 0; d < whole.rank; d++)
        channel.dim[d] = d == 1 ? whole.dim[1] : 1;
    if (given(l, 1))
        y = point2(p, "$a * $b", y, term_reshape(p, operand(l, 1), &channel));
    if (given(l, 2))
        y = point2(p, "$a + $b", y, term_reshape(p, operand(l, 2), &channel));
    return y;
}

static int batch_norm(struct lowering *l)
{
    struct program *p = l->p;
    int x = operand(l, 0);
    struct gshape whole = p->term[x].shape, channel = { whole.rank, { 0 } };
    for (int d = 0; d < whole.rank; d++)
        channel.dim[d] = d == 1 ? whole.dim[1] : 1;
    int v = point2(p, "$a + $b", operand(l, 4), term_number(p, number(l, 6, 1e-5)));
    int scale = point1(p, "1.0f / sqrtf($a)", false, v);
    if (given(l, 1))
        scale = point2(p, "$a * $b", scale, operand(l, 1));
    int y = point2(p, "$a - $b", x, term_reshape(p, operand(l, 3), &channel));
    y = point2(p, "$a * $b", y, term_reshape(p, scale, &channel));
    return given(l, 2) ? point2(p, "$a + $b", y, term_reshape(p, operand(l, 2), &channel)) : y;
}

static int variance(struct lowering *l, bool with_mean)
{
    struct program *p = l->p;
    int x = operand(l, 0);
    unsigned mask = dims_mask(l, 1, p->term[x].shape.rank);
    int v = variance_of(p, x, mask, garg_number(gnode_kw(l->n, "correction"), 1));
    if (with_mean)
        set_result(l, 1, drop_dims(l, mean_of(p, x, mask), 1));
    return drop_dims(l, v, 0);
}

/* ---- shapes ---- */

static int permute(struct lowering *l, struct str name)
{
    int x = operand(l, 0);
    struct term t = {
        .kind = TERM_PERMUTE, .dtype = l->p->term[x].dtype, .arg = { x }, .n_args = 1
    };
    struct gshape s = l->p->term[x].shape;
    t.shape.rank = s.rank;
    for (int d = 0; d < s.rank; d++)
        t.perm[d] = d;
    if (str_eq(name, S("permute"))) {
        for (int d = 0; d < s.rank; d++)
            t.perm[d] = wrap(l->n->in[1].item[d].i, s.rank);
    } else if (s.rank >= 2) {
        bool both = str_eq(name, S("t"));
        int a = both ? 0 : wrap((int64_t)number(l, 1, 0), s.rank);
        int b = both ? 1 : wrap((int64_t)number(l, 2, 1), s.rank);
        t.perm[a] = b;
        t.perm[b] = a;
    }
    for (int d = 0; d < s.rank; d++)
        t.shape.dim[d] = s.dim[t.perm[d]];
    return term_add(l->p, &t);
}

static int slice_of(struct program *p, int x, int dim, int64_t start, int64_t step, int64_t size)
{
    struct term t = { .kind = TERM_SLICE,
                      .shape = p->term[x].shape,
                      .dtype = p->term[x].dtype,
                      .arg = { x },
                      .n_args = 1,
                      .dim = dim,
                      .start = start,
                      .stride = step };
    t.shape.dim[dim] = size;
    return term_add(p, &t);
}

static int slice(struct lowering *l)
{
    int x = operand(l, 0), dim = wrap((int64_t)number(l, 1, 0), l->p->term[x].shape.rank);
    int64_t n = l->p->term[x].shape.dim[dim], start = (int64_t)number(l, 2, 0);
    start = start < 0 ? start + n : start;
    start = start < 0 ? 0 : start > n ? n : start;
    return slice_of(l->p, x, dim, start, (int64_t)number(l, 4, 1), result(l, 0)->shape.dim[dim]);
}

static int select_one(struct lowering *l)
{
    int x = operand(l, 0), dim = wrap((int64_t)number(l, 1, 0), l->p->term[x].shape.rank);
    int64_t at = (int64_t)number(l, 2, 0);
    at = at < 0 ? at + l->p->term[x].shape.dim[dim] : at;
    return term_reshape(l->p, slice_of(l->p, x, dim, at, 1, 1), &result(l, 0)->shape);
}

static int split(struct lowering *l)
{
    int x = operand(l, 0), dim = wrap((int64_t)number(l, 2, 0), l->p->term[x].shape.rank),
        first = -1;
    int64_t at = 0;
    for (int i = 0; i < l->n->n_out; i++) {
        int64_t size = result(l, i)->shape.dim[dim];
        int t = slice_of(l->p, x, dim, at, 1, size);
        set_result(l, i, t);
        first = i == 0 ? t : first;
        at += size;
    }
    return first;
}

static int cat(struct lowering *l)
{
    const struct garg *list = &l->n->in[0];
    if (list->kind != GARG_LIST || list->n > TERM_ARGS_MAX)
        return -1;
    struct term t = { .kind = TERM_CAT, .shape = result(l, 0)->shape, .n_args = list->n };
    t.dim = wrap((int64_t)number(l, 1, 0), t.shape.rank);
    for (int i = 0; i < list->n; i++)
        t.arg[i] = l->p->of_value[list->item[i].i];
    t.dtype = l->p->term[t.arg[0]].dtype;
    return term_add(l->p, &t);
}

static int gather(struct lowering *l, struct str name)
{
    bool rows = str_eq(name, S("embedding"));
    int source = operand(l, 0), index = operand(l, rows ? 1 : 2);
    struct term t = { .kind = TERM_GATHER,
                      .shape = result(l, 0)->shape,
                      .dtype = l->p->term[source].dtype,
                      .arg = { source, index },
                      .n_args = 2 };
    t.gather = rows ? GATHER_ROWS : str_eq(name, S("gather")) ? GATHER_ELEMENTS : GATHER_SELECT;
    t.dim = rows ? 0 : wrap((int64_t)number(l, 1, 0), l->p->term[source].shape.rank);
    return term_add(l->p, &t);
}

static int filled(struct lowering *l, struct str name)
{
    double x = str_starts(name, S("zeros")) ? 0
               : str_starts(name, S("ones"))
                   ? 1
                   : number(l, str_eq(name, S("scalar_tensor")) ? 0 : 1, 0);
    enum graph_dtype to = result(l, 0)->dtype;
    int t =
        retyped(l->p, term_number(l->p, x), to == GRAPH_INT || to == GRAPH_BOOL ? to : GRAPH_F32);
    return term_expand(l->p, t, &result(l, 0)->shape);
}

static int arange(struct lowering *l)
{
    struct term t = { .kind = TERM_IOTA,
                      .shape = result(l, 0)->shape,
                      .dtype = result(l, 0)->dtype,
                      .number = number(l, 0, 0),
                      .step = number(l, 2, 1) };
    return term_add(l->p, &t);
}

static int matmul(struct program *p, int a, int b, const struct gshape *shape)
{
    struct term t = { .kind = TERM_MATMUL,
                      .shape = *shape,
                      .dtype = p->term[a].dtype,
                      .arg = { a, b },
                      .n_args = 2 };
    return term_add(p, &t);
}

/* beta * bias + alpha * a @ b */
static int addmm(struct lowering *l)
{
    double alpha = garg_number(gnode_kw(l->n, "alpha"), 1),
           beta = garg_number(gnode_kw(l->n, "beta"), 1);
    int y = matmul(l->p, operand(l, 1), operand(l, 2), &result(l, 0)->shape);
    if (alpha != 1)
        y = point2(l->p, "$a * $b", y, term_number(l->p, alpha));
    int bias = operand(l, 0);
    if (beta != 1)
        bias = point2(l->p, "$a * $b", bias, term_number(l->p, beta));
    return point2(l->p, "$a + $b", y, bias);
}

static int convert(struct lowering *l)
{
    int x = operand(l, 0);
    enum graph_dtype to = result(l, 0)->dtype, from = l->p->term[x].dtype;
    bool exact = to == GRAPH_INT && from != GRAPH_INT && from != GRAPH_BOOL;
    int t = point1(l->p, exact ? "(long long)$a" : to == GRAPH_BOOL ? "($a != 0)" : "$a", false, x);
    return retyped(l->p, t, to == GRAPH_INT || to == GRAPH_BOOL ? to : GRAPH_F32);
}

/* ---- the table of the rest ---- */

static bool one_of(struct str name, const char *const *list)
{
    for (; *list != NULL; list++)
        if (str_eq(name, str_from(*list)))
            return true;
    return false;
}

static int shape_op(struct lowering *l, struct str name)
{
    static const char *const same[] = { "clone",           "detach",     "alias",
                                        "lift_fresh_copy", "contiguous", NULL };
    static const char *const shaped[] = { "view",      "_unsafe_view", "reshape",
                                          "unsqueeze", "squeeze",      NULL };
    static const char *const moved[] = { "permute", "transpose", "t", NULL };
    static const char *const picked[] = { "embedding", "index_select", "gather", NULL };
    static const char *const fills[] = { "full", "full_like", "zeros",         "zeros_like",
                                         "ones", "ones_like", "scalar_tensor", NULL };
    if (one_of(name, same))
        return operand(l, 0);
    if (one_of(name, shaped))
        return term_reshape(l->p, operand(l, 0), &result(l, 0)->shape);
    if (one_of(name, moved))
        return permute(l, name);
    if (one_of(name, picked))
        return gather(l, name);
    if (one_of(name, fills))
        return filled(l, name);
    if (str_eq(name, S("expand")))
        return term_expand(l->p, operand(l, 0), &result(l, 0)->shape);
    if (str_eq(name, S("slice")))
        return slice(l);
    if (str_eq(name, S("select")))
        return select_one(l);
    if (str_eq(name, S("split_with_sizes")))
        return split(l);
    if (str_eq(name, S("cat")))
        return cat(l);
    if (str_eq(name, S("arange")))
        return arange(l);
    return -1;
}

static int composite(struct lowering *l, struct str name)
{
    static const char *const reduced[] = { "sum", "mean", "amax", "amin", NULL };
    if (one_of(name, reduced))
        return reduction(l, name);
    if ((str_eq(name, S("max")) || str_eq(name, S("min"))) && l->n->n_in == 1)
        return reduction(l, name);
    static const struct {
        const char *name;
        int (*make)(struct lowering *);
    } rows[] = { { "pow", power },
                 { "clamp", clamp },
                 { "gelu", gelu },
                 { "leaky_relu", leaky_relu },
                 { "elu", elu },
                 { "linalg_vector_norm", vector_norm },
                 { "native_layer_norm", layer_norm },
                 { "native_group_norm", group_norm },
                 { "_native_batch_norm_legit_no_training", batch_norm },
                 { "addmm", addmm },
                 { "_to_copy", convert } };
    for (size_t i = 0; i < COUNT(rows); i++)
        if (str_eq(name, str_from(rows[i].name)))
            return rows[i].make(l);
    if (str_eq(name, S("_softmax")) || str_eq(name, S("_log_softmax")))
        return softmax(l, name.ptr[1] == 'l');
    if (str_eq(name, S("var")) || str_eq(name, S("var_mean")))
        return variance(l, name.len > 3);
    if (str_eq(name, S("mm")) || str_eq(name, S("bmm")))
        return matmul(l->p, operand(l, 0), operand(l, 1), &result(l, 0)->shape);
    if (str_eq(name, S("add")))
        return add_or_sub(l, "$a + $b");
    if (str_eq(name, S("sub")))
        return add_or_sub(l, "$a - $b");
    return -1;
}

static int lower_node(struct lowering *l)
{
    struct str name = gnode_name(l->n);
    const struct simple *s = simple_find(simple, COUNT(simple), name);
    bool rounded = str_eq(name, S("div")) && gnode_kw(l->n, "rounding_mode") != NULL;
    if (s != NULL && !rounded) {
        int t = simple_term(l, s);
        return str_eq(name, S("div")) ? retyped(l->p, t, GRAPH_F32) : t;
    }
    s = simple_find(predicates, COUNT(predicates), name);
    if (s != NULL && !(str_starts(name, S("bitwise")) && result(l, 0)->dtype != GRAPH_BOOL)) {
        return retyped(l->p, simple_term(l, s), GRAPH_BOOL);
    }
    int t = shape_op(l, name);
    return t >= 0 ? t : composite(l, name);
}

static enum err_code leaves(struct program *p, struct err *err)
{
    for (int i = 0; i < p->graph->n_values; i++) {
        const struct gvalue *v = &p->graph->value[i];
        p->of_value[i] = -1;
        if (v->source == GRAPH_FROM_NODE)
            continue;
        if (v->dtype == GRAPH_F64 || v->dtype == GRAPH_OTHER)
            return err_raise(err, ERR_TASK, "the playbook does not know dtype %s yet ('%s')",
                             v->dtype_name, v->name);
        struct term t = {
            .kind = TERM_LEAF, .shape = v->shape, .dtype = v->dtype, .name = v->name, .leaf = i
        };
        if (v->source == GRAPH_FROM_CONST && v->n_data != 1)
            return err_raise(err, ERR_TASK,
                             "the playbook does not know constant tensors yet ('%s')", v->name);
        if (v->source == GRAPH_FROM_CONST) {
            t.kind = TERM_NUMBER;
            t.number = v->data[0];
        }
        p->of_value[i] = term_add(p, &t);
    }
    return OK;
}

enum err_code lower_graph(struct arena *a, struct graph *g, struct program *ret, struct err *err)
{
    struct program p = { .arena = a, .graph = g, .n_outputs = g->n_outputs };
    p.of_value = arena_new(a, int, (size_t)g->n_values);
    p.output = arena_new(a, int, (size_t)g->n_outputs);
    if (leaves(&p, err) != OK)
        return err->code;
    for (int i = 0; i < g->n_nodes; i++) {
        struct lowering l = { &p, &g->node[i], err };
        int t = lower_node(&l);
        if (t < 0) {
            err_raise(err, ERR_TASK, "the playbook does not know '%s' yet", g->node[i].op);
            return err_hint(
                err, "docs/playbook.md lists what it knows; another author can write this task");
        }
        set_result(&l, 0, t);
        if (p.term[t].name == NULL && g->node[i].out[0] >= 0)
            p.term[t].name = g->value[g->node[i].out[0]].name;
    }
    for (int i = 0; i < g->n_outputs; i++) {
        p.output[i] = p.of_value[g->output[i]];
        if (p.output[i] < 0 || g->value[g->output[i]].dtype == GRAPH_F64)
            return err_raise(err, ERR_TASK, "the playbook cannot make output %d", i);
    }
    *ret = p;
    return OK;
}
