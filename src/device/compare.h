/* device/compare.h -- one pass over a host answer, its reference and eager's answer.
 *
 * For the cpu target, through ctypes. With bound = tol (s + |r|): an element misses
 * when !(|a - r| <= bound), so NaN misses; where r is not finite, a must be the same
 * (both NaN, or the same infinity). Parallel by OpenMP.
 */
#ifndef DEVICE_COMPARE_H
#define DEVICE_COMPARE_H

#include <stdint.h>

struct compare_result {
    int64_t misses, first;  /* first: index of the first miss, -1 */
    int64_t far, first_far; /* !(|a - e| <= published (1 + |e|)), counted when eager is given */
    double max_err;         /* largest |a - r| / (s + |r|) */
    double diff_sq;         /* sum of (a - r)^2 over finite r */
    double centered_sq;     /* sum of (r - mean)^2 over finite r */
};

struct compare_rule {
    double s, mean;   /* standard deviation and mean of the reference */
    double tol;       /* of |a - r| <= tol (s + |r|) */
    double published; /* of |a - e| <= published (1 + |e|) */
};

/* a, eager: n elements of dtype (enum ca_dtype: CA_F32, CA_F64, CA_F16 or CA_BF16);
 * eager may be NULL; r: n doubles. 0, or -1 for another dtype. */
int compare_floats(const void *a, const void *eager, int dtype, const double *r, int64_t n,
                   const struct compare_rule *rule, struct compare_result *ret);

/* The slices of an answer along one dimension: element i is of slice i / inner % n_slices. Each has
 * a spread and a tolerance of its own. */
struct slice_rule {
    int64_t n_slices, inner;
    const double *s, *tol;        /* n_slices each */
    const unsigned char *aside;   /* n; where not 0 the element does not count; may be NULL */
    double *ret_worst, *ret_diff; /* n_slices each: largest scaled error, sum of (a - r)^2 */
};

/* Fills ret_worst and ret_diff, and of ret misses, first and max_err. 0, or -1 for another dtype
 * or without memory. */
int compare_slices(const void *a, int dtype, const double *r, int64_t n,
                   const struct slice_rule *rule, struct compare_result *ret);

#endif
