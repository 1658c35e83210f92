/* Algebra on terms: the same numbers by less work. */
#include "playbook/term.h"

/* Follow views that only rename: for matching. */
static int plain(const struct program *p, int t)
{
    while (p->term[t].kind == TERM_POINT && p->term[t].n_args == 1 &&
           strcmp(p->term[t].form, "$a") == 0)
        t = p->term[t].arg[0];
    return t;
}

static bool is_number(const struct program *p, int t, double x)
{
    while (p->term[t].kind == TERM_EXPAND || p->term[t].kind == TERM_RESHAPE)
        t = p->term[t].arg[0];
    return p->term[t].kind == TERM_NUMBER && p->term[t].number == x;
}

/* Is t the index along `dim` (0 or 1) of an (n, n) matrix? */
static bool is_index(const struct program *p, int t, int dim)
{
    int64_t n = p->term[t].shape.dim[0];
    while (p->term[t].kind == TERM_EXPAND || p->term[t].kind == TERM_RESHAPE) {
        const struct gshape *s = &p->term[t].shape;
        bool column = s->rank == 2 && s->dim[0] == n && s->dim[1] == 1;
        bool row =
            (s->rank == 2 && s->dim[0] == 1 && s->dim[1] == n) || (s->rank == 1 && s->dim[0] == n);
        if (s->rank == 2 && (column || row) && (dim == 0) != column)
            return false;
        if (dim == 0 && row)
            return false;
        t = p->term[t].arg[0];
    }
    return p->term[t].kind == TERM_IOTA && p->term[t].number == 0 && p->term[t].step == 1 &&
           gshape_count(&p->term[t].shape) == n;
}

/* where(i == j, v, 0): a diagonal matrix. Returns the term of v at (i, j), or -1. */
static int diagonal_of(const struct program *p, int t)
{
    const struct term *w = &p->term[t];
    if (w->kind != TERM_POINT || strcmp(w->form, "($a ? $b : $c)") != 0 || w->shape.rank != 2 ||
        w->shape.dim[0] != w->shape.dim[1] || !is_number(p, w->arg[2], 0))
        return -1;
    const struct term *eq = &p->term[plain(p, w->arg[0])];
    if (eq->kind != TERM_POINT || strcmp(eq->form, "($a == $b)") != 0)
        return -1;
    bool crossed = is_index(p, eq->arg[0], 0) && is_index(p, eq->arg[1], 1);
    bool straight = is_index(p, eq->arg[0], 1) && is_index(p, eq->arg[1], 0);
    return crossed || straight ? w->arg[1] : -1;
}

/* diag(v) @ M = v[i] M[i][j]: a scaling of rows. In (diag(v) M)[i][j] = sum_k d[i][k] M[k][j] only
 * k = i is not zero. O(n m) instead of O(n n m). */
static bool diagonal_product(struct program *p, int t)
{
    struct term m = p->term[t];
    int v = m.kind == TERM_MATMUL && m.shape.rank == 2 ? diagonal_of(p, m.arg[0]) : -1;
    if (v < 0)
        return false;
    /* v at (i, i): v is given at (i, j) and the same along j on the diagonal's row, or along i. */
    const struct term *e = &p->term[v];
    int base = e->kind == TERM_EXPAND ? e->arg[0] : v;
    const struct gshape *s = &p->term[base].shape;
    if (gshape_count(s) != m.shape.dim[0] && gshape_count(s) != 1)
        return false;
    struct gshape column = { 2, { gshape_count(s), 1 } };
    int arg[] = { term_reshape(p, base, &column), m.arg[1] };
    int scaled = term_point(p, "$a * $b", false, 2, arg);
    p->term[scaled].name = m.name;
    p->term[t] = p->term[scaled];
    return true;
}

/* The product below biases and scales that do not depend on the summed dimension... only a bias:
 * sum_j (A B)[i][j] = sum_k A[i][k] (sum_j B[k][j]): a matrix-vector product. O(m k) instead of
 * O(m k n). And sum_j (X + b[j]) = sum_j X + sum_j b[j], by linearity. */
static int sum_of_product(struct program *p, int t)
{
    struct term x = p->term[t];
    if (x.kind == TERM_MATMUL && x.shape.rank == 2) {
        int weights = term_reduce(p, REDUCE_SUM, x.arg[1], 2u); /* (K, 1) */
        struct gshape row = { 2, { 1, p->term[x.arg[1]].shape.dim[0] } };
        int arg[] = { x.arg[0], term_reshape(p, weights, &row) };
        return term_reduce(p, REDUCE_SUM, term_point(p, "$a * $b", false, 2, arg), 2u);
    }
    if (x.kind == TERM_POINT && strcmp(x.form, "$a + $b") == 0 && x.shape.rank == 2) {
        int left = sum_of_product(p, x.arg[0]);
        if (left < 0)
            return -1;
        int bias = x.arg[1];
        int right = term_reduce(p, REDUCE_SUM, bias, 2u);
        /* A bias row is the same for every i: sum it once. */
        if (p->term[bias].kind == TERM_EXPAND) {
            int base = p->term[bias].arg[0];
            if (gshape_count(&p->term[base].shape) == x.shape.dim[1]) {
                struct gshape row = { 2, { 1, x.shape.dim[1] } };
                right = term_reduce(p, REDUCE_SUM, term_reshape(p, base, &row), 2u);
            }
        }
        int arg[] = { left, right };
        return term_point(p, "$a + $b", false, 2, arg);
    }
    return -1;
}

static bool reduced_product(struct program *p, int t)
{
    struct term r = p->term[t];
    if (r.kind != TERM_REDUCE || r.reduce != REDUCE_SUM || r.mask != 2u ||
        p->term[r.arg[0]].shape.rank != 2)
        return false;
    int better = sum_of_product(p, r.arg[0]);
    if (better < 0)
        return false;
    p->term[better].name = r.name;
    p->term[t] = p->term[better];
    return true;
}

void rewrite_program(struct program *p)
{
    int n = p->n; /* what a rewrite adds needs no second look */
    for (int t = 0; t < n; t++)
        if (!diagonal_product(p, t))
            reduced_product(p, t);
}
