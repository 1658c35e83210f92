/* playbook/emit.h -- a kernel's formula as C statements.
 *
 * Both targets share this: the loops around the statements are template_cpu.c's and
 * template_cuda.c's. What does not depend on the column goes to `outer`, the rest to
 * `body`; reductions are asked for by the template, stage by stage.
 */
#ifndef PLAYBOOK_EMIT_H
#define PLAYBOOK_EMIT_H

#include "playbook/affine.h"
#include "playbook/plan.h"

#define EMIT_ARGS_MAX 64
#define EMIT_STAGES_MAX 16
#define EMIT_CACHED_MAX 16

/* One pointer argument of the kernel. */
struct emit_arg {
    int leaf; /* as term.leaf */
    const char *name;
    const char *c_type; /* "float", "__nv_bfloat16" */
    enum graph_dtype dtype;
    const char *dtype_name;
    int bytes; /* of one element */
};

/* A load of `vec` neighbours at once: made before the inner loop. */
struct emit_pack {
    int arg;
    const char *offset; /* of the first one */
    const char *name;
};

struct emit {
    struct arena *arena;
    const struct plan *plan;
    const struct kernel *kernel;
    bool cuda;
    int vec;                      /* neighbours in one access; 1: none */
    const char *row, *col, *lane; /* names of the loop variables; lane: inside a pack */
    const struct affine *at_row, *at_col;
    struct buf outer, body;
    struct emit_arg arg[EMIT_ARGS_MAX];
    int n_args;
    struct emit_pack pack[EMIT_ARGS_MAX];
    int n_packs;
    int stage_term[EMIT_STAGES_MAX]; /* reductions, in the order in which they can be made */
    int n_stages;
    int cached[EMIT_CACHED_MAX]; /* costly terms that several stages need */
    int n_cached;
    const char *cache_at; /* "[c]" or "[i][k]": how an element of a cache is named; NULL: none */
    int along_red, along_col; /* KERNEL_COLUMNS: loads whose neighbours lie along r, along c */
    bool failed;
    /* private */
    struct emit_memo *memo;
    int n_memo, n_names;
    bool inside[EMIT_CACHED_MAX]; /* made in this stage already */
    bool filled[EMIT_CACHED_MAX]; /* made by an earlier stage */
};

/* Find the stages, arguments and caches of a kernel. False: it cannot be one kernel. */
bool emit_possible(const struct plan *plan, const struct kernel *k);
void emit_init(struct emit *e, struct arena *a, const struct plan *plan, const struct kernel *k,
               bool cuda, int vec);

/* Statements for the operand of stage s, or for the sink; the result's name. */
const char *emit_stage(struct emit *e, int s);
const char *emit_sink(struct emit *e, int which); /* 0, or 1 .. kernel->n_more */
void emit_stage_done(struct emit *e);             /* the inner scope ends */

const char *emit_c_type(bool cuda, const char *dtype_name);
const char *emit_store(struct emit *e, enum graph_dtype d,
                       const char *value); /* converted for storing */
const struct affine *emit_out_offset(struct emit *e);
const char *emit_reduce_init(enum reduce_kind r);

#endif
