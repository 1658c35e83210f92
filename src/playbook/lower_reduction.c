/* Reductions, and the norms and softmaxes that are made of them. */
#include <math.h>

#include "playbook/lower_int.h"

/* A list of dimensions as a mask; absent or empty: all. */
static unsigned dims_mask(const struct lowering *l, int i, int rank)
{
    const struct garg *a = i < l->n->n_in ? &l->n->in[i] : NULL;
    unsigned mask = 0;
    if (a != NULL && a->kind == GARG_INT)
        return 1u << lower_dim(a->i, rank);
    for (int k = 0; a != NULL && a->kind == GARG_LIST && k < a->n; k++)
        mask |= 1u << lower_dim(a->item[k].i, rank);
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

/* keepdim false: the reduced dimensions go. */
static int drop_dims(struct lowering *l, int t, int out)
{
    return term_reshape(l->p, t, &lower_result(l, out)->shape);
}

static int mean_of(struct program *p, int x, unsigned mask)
{
    double n = mask_count(&p->term[x].shape, mask);
    int sum = term_reduce(p, REDUCE_SUM, x, mask);
    return term_point2(p, "$a * $b", sum, term_number(p, 1 / n));
}

static int variance_of(struct program *p, int x, unsigned mask, double correction)
{
    double n = mask_count(&p->term[x].shape, mask);
    int d = term_point2(p, "$a - $b", x, mean_of(p, x, mask));
    int sum = term_reduce(p, REDUCE_SUM, term_point1(p, "$a * $a", false, d), mask);
    return term_point2(p, "$a * $b", sum, term_number(p, 1 / (n - correction)));
}

static int reduction(struct lowering *l, struct str name)
{
    int x = lower_operand(l, 0);
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
    int x = lower_operand(l, 0);
    double ord = lower_number(l, 1, 2);
    unsigned mask = dims_mask(l, 2, l->p->term[x].shape.rank);
    if (ord == 1)
        return drop_dims(
            l, term_reduce(l->p, REDUCE_SUM, term_point1(l->p, "fabsf($a)", false, x), mask), 0);
    if (isinf(ord))
        return drop_dims(
            l, term_reduce(l->p, REDUCE_MAX, term_point1(l->p, "fabsf($a)", false, x), mask), 0);
    if (ord != 2)
        return -1;
    int sum = term_reduce(l->p, REDUCE_SUM, term_point1(l->p, "$a * $a", false, x), mask);
    return drop_dims(l, term_point1(l->p, "sqrtf($a)", false, sum), 0);
}

static int softmax(struct lowering *l, bool logarithm)
{
    struct program *p = l->p;
    int x = lower_operand(l, 0);
    unsigned mask = 1u << lower_dim((int64_t)lower_number(l, 1, -1), p->term[x].shape.rank);
    int d = term_point2(p, "$a - $b", x, term_reduce(p, REDUCE_MAX, x, mask));
    int e = term_point1(p, "expf($a)", true, d);
    int sum = term_reduce(p, REDUCE_SUM, e, mask);
    if (logarithm)
        return term_point2(p, "$a - $b", d, term_point1(p, "logf($a)", true, sum));
    return term_point2(p, "$a * $b", e, term_point1(p, "1.0f / $a", false, sum));
}

/* (x - mean) rstd weight + bias, with mean and rstd over `mask`. */
static int normalise(struct program *p, int x, unsigned mask, double eps, int *ret_mean,
                     int *ret_rstd)
{
    *ret_mean = mean_of(p, x, mask);
    int v = variance_of(p, x, mask, 0);
    *ret_rstd = term_point1(p, "1.0f / sqrtf($a)", false,
                            term_point2(p, "$a + $b", v, term_number(p, eps)));
    return term_point2(p, "$a * $b", term_point2(p, "$a - $b", x, *ret_mean), *ret_rstd);
}

static int affine(struct lowering *l, int y, int weight, int bias)
{
    if (lower_given(l, weight))
        y = term_point2(l->p, "$a * $b", y, lower_operand(l, weight));
    if (lower_given(l, bias))
        y = term_point2(l->p, "$a + $b", y, lower_operand(l, bias));
    return y;
}

static int layer_norm(struct lowering *l)
{
    int x = lower_operand(l, 0), rank = l->p->term[x].shape.rank, mean, rstd;
    int k = l->n->in[1].kind == GARG_LIST ? l->n->in[1].n : 1;
    unsigned mask = ((1u << k) - 1) << (rank - k);
    int y = affine(l, normalise(l->p, x, mask, lower_number(l, 4, 1e-5), &mean, &rstd), 2, 3);
    lower_set_result(l, 1, mean);
    lower_set_result(l, 2, rstd);
    return y;
}

/* (N, C, ...) as (N, G, C/G * rest): one row a group. */
static int group_norm(struct lowering *l)
{
    struct program *p = l->p;
    int x = lower_operand(l, 0), mean, rstd;
    struct gshape whole = p->term[x].shape;
    int64_t groups = (int64_t)lower_number(l, 6, 1);
    struct gshape rows = { 3,
                           { whole.dim[0], groups, gshape_count(&whole) / whole.dim[0] / groups } };
    int y = normalise(p, term_reshape(p, x, &rows), 4u, lower_number(l, 7, 1e-5), &mean, &rstd);
    y = term_reshape(p, y, &whole);
    struct gshape channel = { whole.rank, { 0 } };
    for (int d = 0; d < whole.rank; d++)
        channel.dim[d] = d == 1 ? whole.dim[1] : 1;
    if (lower_given(l, 1))
        y = term_point2(p, "$a * $b", y, term_reshape(p, lower_operand(l, 1), &channel));
    if (lower_given(l, 2))
        y = term_point2(p, "$a + $b", y, term_reshape(p, lower_operand(l, 2), &channel));
    return y;
}

static int batch_norm(struct lowering *l)
{
    struct program *p = l->p;
    int x = lower_operand(l, 0);
    struct gshape whole = p->term[x].shape, channel = { whole.rank, { 0 } };
    for (int d = 0; d < whole.rank; d++)
        channel.dim[d] = d == 1 ? whole.dim[1] : 1;
    int v =
        term_point2(p, "$a + $b", lower_operand(l, 4), term_number(p, lower_number(l, 6, 1e-5)));
    int scale = term_point1(p, "1.0f / sqrtf($a)", false, v);
    if (lower_given(l, 1))
        scale = term_point2(p, "$a * $b", scale, lower_operand(l, 1));
    int y = term_point2(p, "$a - $b", x, term_reshape(p, lower_operand(l, 3), &channel));
    y = term_point2(p, "$a * $b", y, term_reshape(p, scale, &channel));
    return lower_given(l, 2)
               ? term_point2(p, "$a + $b", y, term_reshape(p, lower_operand(l, 2), &channel))
               : y;
}

static int variance(struct lowering *l, bool with_mean)
{
    struct program *p = l->p;
    int x = lower_operand(l, 0);
    unsigned mask = dims_mask(l, 1, p->term[x].shape.rank);
    int v = variance_of(p, x, mask, garg_number(gnode_kw(l->n, "correction"), 1));
    if (with_mean)
        lower_set_result(l, 1, drop_dims(l, mean_of(p, x, mask), 1));
    return drop_dims(l, v, 0);
}

int lower_reduction(struct lowering *l, struct str name)
{
    static const char *const reduced[] = { "sum", "mean", "amax", "amin", NULL };
    if (lower_one_of(name, reduced))
        return reduction(l, name);
    if ((str_eq(name, S("max")) || str_eq(name, S("min"))) && l->n->n_in == 1)
        return reduction(l, name);
    static const struct {
        const char *name;
        int (*make)(struct lowering *);
    } rows[] = { { "linalg_vector_norm", vector_norm },
                 { "native_layer_norm", layer_norm },
                 { "native_group_norm", group_norm },
                 { "_native_batch_norm_legit_no_training", batch_norm } };
    for (size_t i = 0; i < COUNT(rows); i++)
        if (str_eq(name, str_from(rows[i].name)))
            return rows[i].make(l);
    if (str_eq(name, S("_softmax")) || str_eq(name, S("_log_softmax")))
        return softmax(l, name.ptr[1] == 'l');
    if (str_eq(name, S("var")) || str_eq(name, S("var_mean")))
        return variance(l, name.len > 3);
    return -1;
}
