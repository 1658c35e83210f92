/* playbook/term.h -- what a model computes, as expressions over indices.
 *
 * A term is a tensor given by a formula: its element at an index is a C expression over
 * elements of its arguments at other indices. Views cost nothing this way: they change
 * indices. lower.c makes terms of ATen operators, rewrite.c improves them, plan.c decides
 * which of them become memory.
 */
#ifndef PLAYBOOK_TERM_H
#define PLAYBOOK_TERM_H

#include "graph/graph.h"

enum term_kind {
    TERM_LEAF,    /* memory: an input, a parameter, or a term that plan.c gave a buffer */
    TERM_NUMBER,  /* one number, any shape */
    TERM_IOTA,    /* start + step * index */
    TERM_POINT,   /* element-wise: `form` over the arguments, which have this shape */
    TERM_EXPAND,  /* broadcast: dimensions of size 1 repeat, new ones in front */
    TERM_PERMUTE, /* dimension i is dimension perm[i] of the argument */
    TERM_RESHAPE, /* same elements in the same order, another shape */
    TERM_SLICE,   /* start and step along one dimension */
    TERM_CAT,     /* arguments one after another along `dim` */
    TERM_GATHER,  /* argument 0 with the index of `dim` taken from argument 1 */
    TERM_REDUCE,  /* over the dimensions in `mask`, which stay with size 1 */
    TERM_MATMUL   /* (batch, M, K) x (batch, K, N), or without batch */
};

enum reduce_kind { REDUCE_SUM, REDUCE_MAX, REDUCE_MIN };

/* How TERM_GATHER finds the element of the index tensor. */
enum gather_kind { GATHER_ROWS, GATHER_SELECT, GATHER_ELEMENTS };

#define TERM_ARGS_MAX 16

struct term {
    enum term_kind kind;
    struct gshape shape;
    enum graph_dtype dtype;
    const char *name;       /* from the trace, for readers of the kernels */
    int arg[TERM_ARGS_MAX]; /* ids of terms */
    int n_args;
    const char *form; /* TERM_POINT: "$a + $b" */
    bool costly;      /* calls a transcendental function */
    double number, step;
    int dim;
    unsigned mask;
    int64_t start, stride;
    int perm[GRAPH_RANK_MAX];
    enum reduce_kind reduce;
    enum gather_kind gather;
    int leaf; /* TERM_LEAF: id of the value, or -1 - id of a buffer of plan.c */
};

struct program {
    struct arena *arena;
    struct graph *graph;
    struct term *term;
    int n, cap;
    int *output; /* term ids, one for each output */
    int n_outputs;
    int *of_value; /* term id of each value of the graph, -1 */
};

/* ERR_TASK names the operator that is not known. */
MUST_USE
enum err_code lower_graph(struct arena *a, struct graph *g, struct program *ret, struct err *err);

/* The id of this formula; an equal one that is there already serves. Pointers to terms go stale. */
int term_add(struct program *p, const struct term *t);
int term_append(struct program *p, const struct term *t); /* a term of its own */
int term_point(struct program *p, const char *form, bool costly, int n, const int *arg);
int term_point1(struct program *p, const char *form, bool costly, int a);
int term_point2(struct program *p, const char *form, int a, int b);
int term_retyped(struct program *p, int t,
                 enum graph_dtype dtype); /* the same formula, another type */
int term_number(struct program *p, double x);
int term_expand(struct program *p, int arg, const struct gshape *to); /* arg itself when equal */
int term_reshape(struct program *p, int arg, const struct gshape *to);
int term_reduce(struct program *p, enum reduce_kind kind, int arg, unsigned mask);

/* Algebra: rewrites that need less work. Each is explained and tested where it stands. */
void rewrite_program(struct program *p);

#endif
