#include "harness/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ALONE_FACTOR 1.25
#define CLEAR_ALPHA 0.0005
#define BESIDE 0.02 /* exam.md 4: a baseline beside a live runner */

void samples_add(struct samples *s, double value)
{
    if (s->n < SAMPLES_MAX)
        s->v[s->n++] = value;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The most of n fair coins that show heads in at most a share `alpha` of all trials: a sum of
 * binomial(n, 1/2) terms. -1 when even none is likelier. */
static int few_heads(int n, double alpha)
{
    double term = ldexp(1, -n), sum = term;
    int heads = 0;
    while (sum <= alpha && heads < n) {
        heads++;
        term *= (double)(n - heads + 1) / heads;
        sum += term;
    }
    return heads - 1;
}

/* The largest index whose order statistic lies above the median in at most 2.5% of all series;
 * 0 when even the smallest does more often. */
static int low_rank(int n)
{
    int heads = few_heads(n, 0.025);
    return heads > 0 ? heads : 0;
}

struct arm_time stats_time(const struct samples *s)
{
    double sorted[SAMPLES_MAX];
    struct arm_time t = { .windows = s->n, .void_windows = s->voids };
    if (s->n == 0)
        return t;
    memcpy(sorted, s->v, (size_t)s->n * sizeof *sorted);
    qsort(sorted, (size_t)s->n, sizeof *sorted, by_value);
    int n = s->n, lo = low_rank(n), hi = n - 1 - lo;
    t.median = n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
    t.lo = sorted[lo];
    t.hi = sorted[hi];
    return t;
}

struct ratio stats_paired(const struct samples *base, const struct samples *candidate)
{
    struct samples r = { 0 };
    int n = base->n < candidate->n ? base->n : candidate->n;
    for (int i = 0; i < n; i++)
        if (candidate->v[i] > 0)
            samples_add(&r, base->v[i] / candidate->v[i]);
    struct arm_time t = stats_time(&r);
    return (struct ratio){ t.median, t.lo, t.hi };
}

struct ratio stats_apart(const struct arm_time *base, const struct arm_time *candidate)
{
    if (base->windows == 0 || candidate->windows == 0 || candidate->lo <= 0)
        return (struct ratio){ 0 };
    return (struct ratio){ base->median / candidate->median, base->lo / candidate->hi,
                           base->hi / candidate->lo };
}

bool stats_touches(const struct ratio *r, double border, double drift)
{
    return r->median > 0 && r->lo < border * drift && r->hi > border / drift;
}

bool stats_clear(const struct samples *base, const struct samples *candidate, double border)
{
    int n = base->n < candidate->n ? base->n : candidate->n, above = 0;
    for (int i = 0; i < n; i++)
        above += base->v[i] > border * candidate->v[i];
    int wrong_side = above < n - above ? above : n - above;
    return wrong_side <= few_heads(n, CLEAR_ALPHA);
}

bool stats_quiet(struct ratio *r, double beside_us, double quiet_us)
{
    if (!(quiet_us > 0) || beside_us <= quiet_us * (1 + BESIDE))
        return false;
    double factor = quiet_us / beside_us;
    *r = (struct ratio){ r->median * factor, r->lo * factor, r->hi * factor };
    return true;
}

bool stats_help(double alone_us, double together_us, double first_us)
{
    return alone_us > ALONE_FACTOR * together_us + first_us;
}

double stats_width(const struct arm_time *t)
{
    return t->windows > 0 && t->median > 0 ? (t->hi - t->lo) / t->median : 1;
}
