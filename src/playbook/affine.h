/* playbook/affine.h -- index arithmetic: sums of coefficients times loop variables.
 *
 * Views make quotients and remainders; with the range of every variable known most of
 * them fold away, so that a load's address is what a person would write. All values are
 * whole and not negative. Memory: the arena's; values are immutable.
 */
#ifndef PLAYBOOK_AFFINE_H
#define PLAYBOOK_AFFINE_H

#include "core/str.h"

struct affine;

const struct affine *affine_number(struct arena *a, int64_t x);
const struct affine *affine_var(struct arena *a, const char *name, int64_t max); /* 0..max */
const struct affine *affine_add(struct arena *a, const struct affine *x, const struct affine *y);
const struct affine *affine_scale(struct arena *a, const struct affine *x, int64_t by);
const struct affine *affine_div(struct arena *a, const struct affine *x, int64_t by);
const struct affine *affine_mod(struct arena *a, const struct affine *x, int64_t by);

bool affine_equal(const struct affine *x, const struct affine *y);
bool affine_uses(const struct affine *x, const char *var); /* also inside quotients */
int64_t affine_max(const struct affine *x);

/* The coefficient of a bare variable; 0 when it is not there or only inside a quotient. */
int64_t affine_coefficient(const struct affine *x, const char *var);

/* Do all other coefficients and the constant divide by n? */
bool affine_multiple(const struct affine *x, int64_t n, const char *but_a, const char *but_b);

const char *affine_text(struct arena *a, const struct affine *x);

#endif
