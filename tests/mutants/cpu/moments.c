// task moments.py
// rows 200 1
// fault  40 variance_over_n 0 0 0 0
// fault  41 second_output_skipped_from 1 199 0 0
// fault  42 second_output_is_deviation 0 0 0 0
// fault  43 mean_of_a_part 1 200 0 0
// fault  44 outputs_exchanged_in_row 0 199 0 0
// sums 211
// honest 140 welford 0 0 0 0
// honest 141 one_pass_in_double 0 0 0 0
#include "mutant.h"

static int64_t rows(const struct ca_call *c)
{
    return c->in.v[0].shape[0];
}

static void welford(const float *x, int64_t n, float *mean, float *var)
{
    float m = 0, s = 0;
    for (int64_t i = 0; i < n; i++) {
        float d = x[i] - m;
        m += d / (float)(i + 1);
        s += d * (x[i] - m);
    }
    *mean = m;
    *var = s / (float)(n - 1);
}

static void one_pass(const float *x, int64_t n, float *mean, float *var)
{
    double s = 0, q = 0;
    for (int64_t i = 0; i < n; i++) {
        s += x[i];
        q += (double)x[i] * x[i];
    }
    *mean = (float)(s / (double)n);
    *var = (float)((q - s * s / (double)n) / (double)(n - 1));
}

static void row(const struct ca_call *c, int64_t r, void *const *to)
{
    int64_t n = c->in.v[0].shape[1];
    const float *x = (const float *)c->in.v[0].data + r * n;
    float d[256], mean, var, *y = to[0], *z = to[1];
    if (is(140)) {
        welford(x, n, &mean, &var);
    } else if (is(141)) {
        one_pass(x, n, &mean, &var);
    } else {
        mean = is(43) ? sum_of(x, A) / (float)A : sum_of(x, n) / (float)n;
        for (int64_t i = 0; i < n; i++)
            d[i] = (x[i] - mean) * (x[i] - mean);
        var = sum_of(d, n) / (float)(is(40) ? n : n - 1);
    }
    int swap = is(44) && r == A;
    *y = swap ? var : mean;
    if (!(is(41) && r >= A))
        *z = swap ? mean : is(42) ? sqrtf(var) : var;
}
