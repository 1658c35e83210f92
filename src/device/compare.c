#include "device/compare.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_agent.h"

#define CHUNK 4096 /* elements widened at a time: stays in the first-level cache */

static double half_value(uint16_t h)
{
    int exponent = h >> 10 & 31, fraction = h & 1023;
    double v = exponent == 0    ? ldexp(fraction, -24)
               : exponent == 31 ? (fraction ? NAN : INFINITY)
                                : ldexp(fraction + 1024, exponent - 25);
    return h & 0x8000 ? -v : v;
}

static double bf16_value(uint16_t b)
{
    uint32_t bits = (uint32_t)b << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static void widen(const void *from, int dtype, int64_t at, int64_t n, double *to)
{
    for (int64_t i = 0; i < n; i++) {
        switch (dtype) {
        case CA_F32:
            to[i] = ((const float *)from)[at + i];
            break;
        case CA_F64:
            to[i] = ((const double *)from)[at + i];
            break;
        case CA_F16:
            to[i] = half_value(((const uint16_t *)from)[at + i]);
            break;
        default:
            to[i] = bf16_value(((const uint16_t *)from)[at + i]);
        }
    }
}

static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

/* |a - r| / (s + |r|); infinite for what is not finite and should be, or the other way round. */
static double scaled_error(double a, double r, double s)
{
    if (same(a, r))
        return 0;
    double scale = s + fabs(r);
    double e = isfinite(r) ? fabs(a - r) / (scale > 1e-300 ? scale : 1e-300) : INFINITY;
    return isnan(e) ? INFINITY : e;
}

static void miss(struct compare_result *c, int64_t at)
{
    c->misses++;
    if (c->first < 0 || at < c->first)
        c->first = at;
}

static void one(struct compare_result *c, const struct compare_rule *rule, double a, double r,
                int64_t at)
{
    double e = scaled_error(a, r, rule->s);
    if (e > rule->tol)
        miss(c, at);
    if (e > c->max_err)
        c->max_err = e;
    if (isfinite(r)) {
        c->diff_sq += (a - r) * (a - r);
        c->centered_sq += (r - rule->mean) * (r - rule->mean);
    }
}

static void chunk(struct compare_result *c, const struct compare_rule *rule, const double *a,
                  const double *e, const double *r, int64_t at, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        one(c, rule, a[i], r[i], at + i);
        if (e != NULL && !same(a[i], e[i]) &&
            !(fabs(a[i] - e[i]) <= rule->published * (1 + fabs(e[i])))) {
            c->far++;
            if (c->first_far < 0 || at + i < c->first_far)
                c->first_far = at + i;
        }
    }
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < 0 ? b : b < 0 ? a : a < b ? a : b;
}

static bool known(int dtype)
{
    return dtype == CA_F32 || dtype == CA_F64 || dtype == CA_F16 || dtype == CA_BF16;
}

static void add(struct compare_result *all, const struct compare_result *mine)
{
    all->misses += mine->misses;
    all->far += mine->far;
    all->first = earlier(all->first, mine->first);
    all->first_far = earlier(all->first_far, mine->first_far);
    all->max_err = mine->max_err > all->max_err ? mine->max_err : all->max_err;
    all->diff_sq += mine->diff_sq;
    all->centered_sq += mine->centered_sq;
}

int compare_floats(const void *a, const void *eager, int dtype, const double *r, int64_t n,
                   const struct compare_rule *rule, struct compare_result *ret)
{
    struct compare_result all = { .first = -1, .first_far = -1 };
    if (!known(dtype))
        return -1;
#pragma omp parallel
    {
        struct compare_result mine = { .first = -1, .first_far = -1 };
        double wide_a[CHUNK], wide_e[CHUNK];
#pragma omp for schedule(static) nowait
        for (int64_t at = 0; at < n; at += CHUNK) {
            int64_t len = n - at < CHUNK ? n - at : CHUNK;
            widen(a, dtype, at, len, wide_a);
            if (eager != NULL)
                widen(eager, dtype, at, len, wide_e);
            chunk(&mine, rule, wide_a, eager ? wide_e : NULL, r + at, at, len);
        }
#pragma omp critical
        add(&all, &mine);
    }
    *ret = all;
    return 0;
}

static void slices_of(struct compare_result *c, const struct slice_rule *rule, const double *a,
                      const double *r, int64_t at, int64_t n, double *worst, double *diff)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t j = (at + i) / rule->inner % rule->n_slices;
        if (rule->aside != NULL && rule->aside[at + i])
            continue;
        double e = scaled_error(a[i], r[i], rule->s[j]);
        if (e > rule->tol[j])
            miss(c, at + i);
        worst[j] = e > worst[j] ? e : worst[j];
        diff[j] += isfinite(r[i]) ? (a[i] - r[i]) * (a[i] - r[i]) : 0;
    }
}

int compare_slices(const void *a, int dtype, const double *r, int64_t n,
                   const struct slice_rule *rule, struct compare_result *ret)
{
    struct compare_result all = { .first = -1, .first_far = -1 };
    size_t count = (size_t)rule->n_slices;
    bool bad = !known(dtype);
    memset(rule->ret_worst, 0, count * sizeof(double));
    memset(rule->ret_diff, 0, count * sizeof(double));
#pragma omp parallel
    {
        struct compare_result mine = { .first = -1, .first_far = -1 };
        double wide[CHUNK];
        double *sums = calloc(2 * count, sizeof *sums);
#pragma omp for schedule(static) nowait
        for (int64_t at = 0; at < n; at += CHUNK) {
            int64_t len = n - at < CHUNK ? n - at : CHUNK;
            if (bad || sums == NULL)
                continue;
            widen(a, dtype, at, len, wide);
            slices_of(&mine, rule, wide, r + at, at, len, sums, sums + count);
        }
#pragma omp critical
        {
            add(&all, &mine);
            bad = bad || sums == NULL;
            for (size_t j = 0; sums != NULL && j < count; j++) {
                rule->ret_worst[j] = fmax(rule->ret_worst[j], sums[j]);
                all.max_err = fmax(all.max_err, sums[j]);
                rule->ret_diff[j] += sums[count + j];
            }
        }
        free(sums);
    }
    *ret = all;
    return bad ? -1 : 0;
}
