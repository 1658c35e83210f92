/* playbook/knobs.h -- what the tuner may turn, and the templates that obey. */
#ifndef PLAYBOOK_KNOBS_H
#define PLAYBOOK_KNOBS_H

#include "playbook/plan.h"
#include "task/author.h"

struct knobs {
    int vec;        /* cuda: neighbours in one access, as far as a kernel allows */
    int block;      /* cuda: threads of a pointwise block */
    int per_thread; /* cuda: packs of a row that one thread holds */
    int rows;       /* cuda: rows of a block where a warp takes a row */
    int unroll;     /* cuda: packs of a pointwise thread; cpu: above 1, loops are unrolled */
    int simd_bits;  /* cpu: width of vectors that gcc prefers; 0: its own choice */
    int chunk;      /* cpu: rows that a thread takes at once; 0: an equal share */
    int tf32;       /* cuda: tensor cores for fp32 products */
    int fast_math;  /* the `// ca: fast-math` line */
};

extern const struct knobs knobs_safe; /* where the search begins: right on every plan */

/* Readable source of the whole plan, as one file of the candidate. ERR_LIMIT. */
MUST_USE
enum err_code template_cuda(struct arena *a, const struct plan *plan, const struct knobs *k,
                            const char *task, struct str *ret, struct err *err);
MUST_USE
enum err_code template_cpu(struct arena *a, const struct plan *plan, const struct knobs *k,
                           const char *task, struct str *ret, struct err *err);

/* ---- shared by both, template.c ---- */
#define TEMPLATE_MAX ((size_t)512 << 10)
void template_head(struct buf *b, const char *task, bool fast_math);
const char *template_name(struct arena *a, const struct kernel *k, int index);
void template_describe(struct buf *b, const struct plan *plan, const struct kernel *k);
const char *template_pointer(struct arena *a, const struct plan *plan, int leaf,
                             const char *c_type);
const char *template_out_pointer(struct arena *a, const struct plan *plan, int buffer,
                                 const char *c_type);
void template_tail(struct buf *b, const struct plan *plan, const char *prefix);

/* The finished text, indented by its braces; directives and comments stay as they are. */
MUST_USE
enum err_code template_done(struct arena *a, struct buf *b, struct str *ret, struct err *err);

/* Rows of a matrix product as a library wants them. */
struct gemm {
    int64_t m, n, k, batch;
    int leaf[2];
    bool trans[2];
    int64_t ld[2], step[2]; /* leading dimension; elements between batches */
};
void template_gemm(const struct plan *plan, const struct kernel *k, struct gemm *ret);

#endif
