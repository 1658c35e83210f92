/* playbook/plan.h -- which terms become memory, and the kernels that fill it. */
#ifndef PLAYBOOK_PLAN_H
#define PLAYBOOK_PLAN_H

#include "playbook/term.h"

#define KERNELS_MAX 128
#define SINKS_MORE 7

/* ROWS: `rows` x `cols`, perhaps with reductions over the columns; COLUMNS: reduce the middle of
 * outer x red x inner; MATMUL: a library call. */
enum kernel_kind { KERNEL_ROWS, KERNEL_COLUMNS, KERNEL_MATMUL };

struct kernel {
    enum kernel_kind kind;
    int sink;   /* term: the formula of what is written */
    int buffer; /* where it goes */
    int64_t rows, cols;
    int64_t outer, red, inner;
    bool row_only;                                              /* ROWS: one result a row */
    int n_more, more_sink[SINKS_MORE], more_buffer[SINKS_MORE]; /* row_only: further results */
    bool setup; /* depends on parameters alone: runs in ca_setup */
    const char *name;
};

enum buffer_home { BUFFER_OUT, BUFFER_SCRATCH, BUFFER_KEEP };

struct buffer {
    enum buffer_home home;
    int out;        /* BUFFER_OUT */
    int64_t offset; /* bytes in scratch or keep */
    int64_t count;  /* elements */
    enum graph_dtype dtype;
    const char *dtype_name;
    const char *name;
};

struct plan {
    struct program *p;
    struct kernel kernel[KERNELS_MAX];
    int n_kernels;
    struct buffer buffer[KERNELS_MAX];
    int n_buffers;
    int64_t scratch_bytes, keep_bytes;
    bool half_scratch; /* buffers keep the model's 16-bit type (cuda) or float (cpu) */
};

/* few_rows: below that many rows a long reduction is cut in two. ERR_TASK, ERR_LIMIT. */
MUST_USE
enum err_code plan_program(struct program *p, bool cuda, struct plan *ret, struct err *err);

/* Strides of a term that is memory or a permutation of it; false when it is not. */
bool plan_strides(const struct plan *plan, int term, int *ret_leaf, int64_t stride[GRAPH_RANK_MAX]);

#endif
