#include "playbook/affine.h"

#define PARTS_MAX 16

/* A variable, or a quotient or remainder of a sum. */
enum atom_kind { ATOM_VAR, ATOM_DIV, ATOM_MOD };

struct atom {
    enum atom_kind kind;
    const char *name;
    const struct affine *of;
    int64_t by, max;
};

struct affine {
    int n;
    struct {
        int64_t by;
        const struct atom *atom;
    } part[PARTS_MAX];
    int64_t number;
};

static const struct affine *keep(struct arena *a, const struct affine *x)
{
    struct affine *p = arena_new(a, struct affine, 1);
    *p = *x;
    return p;
}

const struct affine *affine_number(struct arena *a, int64_t x)
{
    return keep(a, &(struct affine){ .number = x });
}

static const struct affine *of_atom(struct arena *a, const struct atom *atom)
{
    struct atom *p = arena_new(a, struct atom, 1);
    *p = *atom;
    struct affine x = { .n = 1 };
    x.part[0].by = 1;
    x.part[0].atom = p;
    return keep(a, &x);
}

const struct affine *affine_var(struct arena *a, const char *name, int64_t max)
{
    if (max == 0)
        return affine_number(a, 0);
    return of_atom(a, &(struct atom){ ATOM_VAR, name, NULL, 0, max });
}

static bool atom_equal(const struct atom *x, const struct atom *y)
{
    if (x == y)
        return true;
    if (x->kind != y->kind || x->by != y->by)
        return false;
    return x->kind == ATOM_VAR ? strcmp(x->name, y->name) == 0 : affine_equal(x->of, y->of);
}

bool affine_equal(const struct affine *x, const struct affine *y)
{
    if (x->n != y->n || x->number != y->number)
        return false;
    for (int i = 0; i < x->n; i++) {
        bool found = false;
        for (int k = 0; k < y->n && !found; k++)
            found = x->part[i].by == y->part[k].by && atom_equal(x->part[i].atom, y->part[k].atom);
        if (!found)
            return false;
    }
    return true;
}

int64_t affine_max(const struct affine *x)
{
    int64_t max = x->number;
    for (int i = 0; i < x->n; i++)
        max += x->part[i].by * x->part[i].atom->max;
    return max;
}

static void part_add(struct affine *x, int64_t by, const struct atom *atom)
{
    for (int i = 0; i < x->n; i++)
        if (atom_equal(x->part[i].atom, atom)) {
            x->part[i].by += by;
            if (x->part[i].by == 0)
                x->part[i] = x->part[--x->n];
            return;
        }
    if (x->n < PARTS_MAX) {
        x->part[x->n].by = by;
        x->part[x->n++].atom = atom;
    }
}

static void part_drop(struct affine *x, int i)
{
    x->part[i] = x->part[--x->n];
}

/* c n (x / n) + c (x mod n) = c x */
static const struct affine *fold(struct arena *a, struct affine *x)
{
    for (int i = 0; i < x->n; i++)
        for (int k = 0; k < x->n; k++) {
            const struct atom *d = x->part[i].atom, *m = x->part[k].atom;
            if (d->kind != ATOM_DIV || m->kind != ATOM_MOD || d->by != m->by ||
                x->part[i].by != x->part[k].by * d->by || !affine_equal(d->of, m->of))
                continue;
            int64_t c = x->part[k].by;
            const struct affine *whole = d->of;
            part_drop(x, i > k ? i : k);
            part_drop(x, i > k ? k : i);
            return affine_add(a, keep(a, x), affine_scale(a, whole, c));
        }
    return keep(a, x);
}

const struct affine *affine_add(struct arena *a, const struct affine *x, const struct affine *y)
{
    struct affine sum = *x;
    sum.number += y->number;
    for (int i = 0; i < y->n; i++)
        part_add(&sum, y->part[i].by, y->part[i].atom);
    return fold(a, &sum);
}

const struct affine *affine_scale(struct arena *a, const struct affine *x, int64_t by)
{
    struct affine s = *x;
    if (by == 0)
        return affine_number(a, 0);
    s.number *= by;
    for (int i = 0; i < s.n; i++)
        s.part[i].by *= by;
    return keep(a, &s);
}

/* x = by * whole + rest, with what divides in `whole`. */
static void divide(const struct affine *x, int64_t by, struct affine *whole, struct affine *rest)
{
    *whole = (struct affine){ .number = x->number / by };
    *rest = (struct affine){ .number = x->number % by };
    for (int i = 0; i < x->n; i++) {
        if (x->part[i].by % by == 0)
            part_add(whole, x->part[i].by / by, x->part[i].atom);
        else
            part_add(rest, x->part[i].by, x->part[i].atom);
    }
}

const struct affine *affine_div(struct arena *a, const struct affine *x, int64_t by)
{
    struct affine whole, rest;
    if (by == 1)
        return x;
    divide(x, by, &whole, &rest);
    if (affine_max(&rest) < by)
        return fold(a, &whole);
    const struct affine *r = keep(a, &rest);
    const struct affine *q =
        of_atom(a, &(struct atom){ ATOM_DIV, NULL, r, by, affine_max(r) / by });
    return affine_add(a, keep(a, &whole), q);
}

const struct affine *affine_mod(struct arena *a, const struct affine *x, int64_t by)
{
    struct affine whole, rest;
    if (by == 1)
        return affine_number(a, 0);
    divide(x, by, &whole, &rest);
    const struct affine *r = fold(a, &rest);
    if (affine_max(r) < by)
        return r;
    return of_atom(a, &(struct atom){ ATOM_MOD, NULL, r, by, by - 1 });
}

bool affine_uses(const struct affine *x, const char *var)
{
    for (int i = 0; i < x->n; i++) {
        const struct atom *t = x->part[i].atom;
        if (t->kind == ATOM_VAR ? strcmp(t->name, var) == 0 : affine_uses(t->of, var))
            return true;
    }
    return false;
}

int64_t affine_coefficient(const struct affine *x, const char *var)
{
    for (int i = 0; i < x->n; i++)
        if (x->part[i].atom->kind == ATOM_VAR && strcmp(x->part[i].atom->name, var) == 0)
            return x->part[i].by;
    return 0;
}

bool affine_multiple(const struct affine *x, int64_t n, const char *but_a, const char *but_b)
{
    bool all = x->number % n == 0;
    for (int i = 0; i < x->n; i++) {
        const struct atom *t = x->part[i].atom;
        bool skip =
            t->kind == ATOM_VAR && (strcmp(t->name, but_a) == 0 || strcmp(t->name, but_b) == 0);
        all = all && (skip || x->part[i].by % n == 0);
    }
    return all;
}

static void text_of(struct buf *b, const struct affine *x)
{
    bool first = true;
    for (int i = 0; i < x->n; i++) {
        const struct atom *t = x->part[i].atom;
        buf_addz(b, first ? "" : " + ");
        first = false;
        if (t->kind == ATOM_VAR) {
            buf_addz(b, t->name);
        } else {
            bool bare = t->of->n == 1 && t->of->number == 0 && t->of->part[0].by == 1;
            buf_addz(b, bare ? "" : "(");
            text_of(b, t->of);
            buf_addf(b, "%s %c %lld", bare ? "" : ")", t->kind == ATOM_DIV ? '/' : '%',
                     (long long)t->by);
        }
        if (x->part[i].by != 1)
            buf_addf(b, " * %lld", (long long)x->part[i].by);
    }
    if (x->number != 0 || first)
        buf_addf(b, "%s%lld", first ? "" : " + ", (long long)x->number);
}

const char *affine_text(struct arena *a, const struct affine *x)
{
    struct buf b = { .arena = a, .max = 4096 };
    text_of(&b, x);
    return b.ptr ? b.ptr : "0";
}
