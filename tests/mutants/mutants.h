/* mutants/mutants.h -- what the files of the tool share: kernels with their rules, number i of a
 * seed. */
#ifndef MUTANTS_MUTANTS_H
#define MUTANTS_MUTANTS_H

#include <stdbool.h>
#include <stdio.h>

#include "harness/exam.h"

#define MAGIC "ca-mutant-here!"
#define RULES_MAX 96
#define KERNELS_MAX 32

struct mutant { /* as in mutant.h */
    char magic[16];
    int64_t kind, a, b;
};

struct rule {
    int64_t kind, a[2], b[2];
    char name[48];
    bool honest;
    int64_t made, equivalent, by_check, by_class, by_time, lived; /* lived: of honest, refused */
};

struct kernel {
    const char *name; /* without ending */
    struct candidate c;
    const char *task;
    int64_t below; /* integers of the equivalence check */
    struct rule rule[RULES_MAX];
    size_t n_rules, n_honest;
    enum precision class; /* of the right kernel */
    const char *so;
    struct str bytes; /* of so */
    size_t at;        /* of struct mutant in it */
};

struct run {
    struct arena a;
    enum target target;
    const char *python, *dir, *work; /* work: for the objects */
    int64_t count, honest, seed, part, parts;
    const char *only;
    FILE *log;
    bool *done[2]; /* by number: what the log holds already */
    struct kernel kernel[KERNELS_MAX];
    size_t n_kernels;
};

struct pick {
    size_t kernel;
    struct rule *rule;
    struct mutant m;
};

/* ---- rules.c ---- */

/* The kernels of r->dir for r->target, with what can be done to each. */
MUST_USE
enum err_code kernels_read(struct run *r, struct err *err);
uint64_t mix(uint64_t x); /* splitmix64 */
/* Number i of the run's seed. */
struct pick pick(struct run *r, bool honest, int64_t i);

/* ---- bits.c ---- */

/* Does the mutant give the right kernel's bits on 1,000 inputs? */
MUST_USE
enum err_code equivalent(struct run *r, struct exam *x, const struct kernel *k,
                         const struct mutant *m, bool *ret, struct err *err);

/* ---- report.c ---- */

/* Tables to `path` (NULL: stdout) and the counts; how many mutants live and right ones are refused.
 */
int64_t report(struct run *r, const char *path);

#endif
