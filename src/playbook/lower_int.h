/* playbook/lower_int.h -- what the files that lower operators share. */
#ifndef PLAYBOOK_LOWER_INT_H
#define PLAYBOOK_LOWER_INT_H

#include "playbook/term.h"

/* One operator on its way. */
struct lowering {
    struct program *p;
    const struct gnode *n;
    struct err *err;
};

/* Argument i as a term: a tensor, or a number. */
int lower_operand(struct lowering *l, int i);
bool lower_given(const struct lowering *l, int i);
double lower_number(const struct lowering *l, int i, double none);
const struct gvalue *lower_result(const struct lowering *l, int i);
void lower_set_result(struct lowering *l, int i, int t);
int lower_dim(int64_t d, int rank); /* counted from the end when negative */
bool lower_one_of(struct str name, const char *const *list); /* list ends with NULL */

/* The term of an operator of that kind, -1: not of this kind. */
int lower_shape(struct lowering *l, struct str name);
int lower_reduction(struct lowering *l, struct str name);

#endif
