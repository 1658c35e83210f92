/* Making terms. */
#include "playbook/term.h"

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
int term_retyped(struct program *p, int t, enum graph_dtype dtype)
{
    struct term copy = p->term[t];
    copy.dtype = dtype;
    return term_add(p, &copy);
}

int term_point1(struct program *p, const char *form, bool costly, int a)
{
    return term_point(p, form, costly, 1, &a);
}

int term_point2(struct program *p, const char *form, int a, int b)
{
    int arg[] = { a, b };
    return term_point(p, form, false, 2, arg);
}
