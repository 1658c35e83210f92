/* Views, pieces, picked elements and filled tensors. */
#include "playbook/lower_int.h"

static int permute(struct lowering *l, struct str name)
{
    int x = lower_operand(l, 0);
    struct term t = {
        .kind = TERM_PERMUTE, .dtype = l->p->term[x].dtype, .arg = { x }, .n_args = 1
    };
    struct gshape s = l->p->term[x].shape;
    t.shape.rank = s.rank;
    for (int d = 0; d < s.rank; d++)
        t.perm[d] = d;
    if (str_eq(name, S("permute"))) {
        for (int d = 0; d < s.rank; d++)
            t.perm[d] = lower_dim(l->n->in[1].item[d].i, s.rank);
    } else if (s.rank >= 2) {
        bool both = str_eq(name, S("t"));
        int a = both ? 0 : lower_dim((int64_t)lower_number(l, 1, 0), s.rank);
        int b = both ? 1 : lower_dim((int64_t)lower_number(l, 2, 1), s.rank);
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
    int x = lower_operand(l, 0),
        dim = lower_dim((int64_t)lower_number(l, 1, 0), l->p->term[x].shape.rank);
    int64_t n = l->p->term[x].shape.dim[dim], start = (int64_t)lower_number(l, 2, 0);
    start = start < 0 ? start + n : start;
    start = start < 0 ? 0 : start > n ? n : start;
    return slice_of(l->p, x, dim, start, (int64_t)lower_number(l, 4, 1),
                    lower_result(l, 0)->shape.dim[dim]);
}

static int select_one(struct lowering *l)
{
    int x = lower_operand(l, 0),
        dim = lower_dim((int64_t)lower_number(l, 1, 0), l->p->term[x].shape.rank);
    int64_t at = (int64_t)lower_number(l, 2, 0);
    at = at < 0 ? at + l->p->term[x].shape.dim[dim] : at;
    return term_reshape(l->p, slice_of(l->p, x, dim, at, 1, 1), &lower_result(l, 0)->shape);
}

static int split(struct lowering *l)
{
    int x = lower_operand(l, 0),
        dim = lower_dim((int64_t)lower_number(l, 2, 0), l->p->term[x].shape.rank), first = -1;
    int64_t at = 0;
    for (int i = 0; i < l->n->n_out; i++) {
        int64_t size = lower_result(l, i)->shape.dim[dim];
        int t = slice_of(l->p, x, dim, at, 1, size);
        lower_set_result(l, i, t);
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
    struct term t = { .kind = TERM_CAT, .shape = lower_result(l, 0)->shape, .n_args = list->n };
    t.dim = lower_dim((int64_t)lower_number(l, 1, 0), t.shape.rank);
    for (int i = 0; i < list->n; i++)
        t.arg[i] = l->p->of_value[list->item[i].i];
    t.dtype = l->p->term[t.arg[0]].dtype;
    return term_add(l->p, &t);
}

static int gather(struct lowering *l, struct str name)
{
    bool rows = str_eq(name, S("embedding"));
    int source = lower_operand(l, 0), index = lower_operand(l, rows ? 1 : 2);
    struct term t = { .kind = TERM_GATHER,
                      .shape = lower_result(l, 0)->shape,
                      .dtype = l->p->term[source].dtype,
                      .arg = { source, index },
                      .n_args = 2 };
    t.gather = rows ? GATHER_ROWS : str_eq(name, S("gather")) ? GATHER_ELEMENTS : GATHER_SELECT;
    t.dim = rows ? 0 : lower_dim((int64_t)lower_number(l, 1, 0), l->p->term[source].shape.rank);
    return term_add(l->p, &t);
}

static int filled(struct lowering *l, struct str name)
{
    double x = str_starts(name, S("zeros")) ? 0
               : str_starts(name, S("ones"))
                   ? 1
                   : lower_number(l, str_eq(name, S("scalar_tensor")) ? 0 : 1, 0);
    enum graph_dtype to = lower_result(l, 0)->dtype;
    int t = term_retyped(l->p, term_number(l->p, x),
                         to == GRAPH_INT || to == GRAPH_BOOL ? to : GRAPH_F32);
    return term_expand(l->p, t, &lower_result(l, 0)->shape);
}

static int arange(struct lowering *l)
{
    struct term t = { .kind = TERM_IOTA,
                      .shape = lower_result(l, 0)->shape,
                      .dtype = lower_result(l, 0)->dtype,
                      .number = lower_number(l, 0, 0),
                      .step = lower_number(l, 2, 1) };
    return term_add(l->p, &t);
}

int lower_shape(struct lowering *l, struct str name)
{
    static const char *const same[] = { "clone",           "detach",     "alias",
                                        "lift_fresh_copy", "contiguous", NULL };
    static const char *const shaped[] = { "view",      "_unsafe_view", "reshape",
                                          "unsqueeze", "squeeze",      NULL };
    static const char *const moved[] = { "permute", "transpose", "t", NULL };
    static const char *const picked[] = { "embedding", "index_select", "gather", NULL };
    static const char *const fills[] = { "full", "full_like", "zeros",         "zeros_like",
                                         "ones", "ones_like", "scalar_tensor", NULL };
    if (lower_one_of(name, same))
        return lower_operand(l, 0);
    if (lower_one_of(name, shaped))
        return term_reshape(l->p, lower_operand(l, 0), &lower_result(l, 0)->shape);
    if (lower_one_of(name, moved))
        return permute(l, name);
    if (lower_one_of(name, picked))
        return gather(l, name);
    if (lower_one_of(name, fills))
        return filled(l, name);
    if (str_eq(name, S("expand")))
        return term_expand(l->p, lower_operand(l, 0), &lower_result(l, 0)->shape);
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
