// task layer_norm.py
// rows 96 387
// fault  40 weight_skipped 0 0 0 0
// fault  41 bias_skipped 0 0 0 0
// fault  42 mean_skipped 0 0 0 0
// fault  43 affine_skipped_from_column 0 386 0 0
// fault  44 first_column_wrong 1 386 0 0
// fault  45 weight_of_the_next_column 0 385 0 0
// fault  46 divides_by_one_less 1 30 0 0
// fault  47 statistics_of_row 0 95 0 95
// fault  48 weights_of_the_first_setup 0 0 0 0
// sums 387
// honest 140 weights_packed 0 0 0 0
// honest 141 one_over_sqrt_by_newton 1 3 0 0
#include "mutant.h"

static int64_t rows(const struct ca_call *c)
{
    return c->in.v[0].shape[0];
}

size_t ca_keep(const struct ca_call *c)
{
    return 2 * 4 * (size_t)c->in.v[0].shape[1];
}

int ca_setup(const struct ca_call *c, void **state)
{
    size_t bytes = 4 * (size_t)c->in.v[0].shape[1];
    static int times;
    (void)state;
    if (times++ > 0 && is(48))
        return 0;
    memcpy(c->keep, c->param.v[0].data, bytes);
    memcpy((char *)c->keep + bytes, c->param.v[1].data, bytes);
    return 0;
}

static float inverse_sqrt(float v)
{
    if (!is(141))
        return 1 / sqrtf(v);
    float y = 1 / sqrtf(v) * 1.0001f;
    for (int64_t i = 0; i < A; i++)
        y = y * (1.5f - 0.5f * v * y * y);
    return y;
}

static void row(const struct ca_call *c, int64_t r, void *const *to)
{
    int64_t n = c->in.v[0].shape[1];
    const float *x = (const float *)c->in.v[0].data + r * n;
    const float *w = is(140) || is(48) ? c->keep : c->param.v[0].data;
    const float *b = is(140) || is(48) ? (const float *)c->keep + n : c->param.v[1].data;
    const float *s = is(47) && r == A ? (const float *)c->in.v[0].data + B * n : x;
    float d[512], *y = to[0];
    float mean = is(42) ? 0 : sum_of(s, n) / (float)n;
    for (int64_t i = 0; i < n; i++)
        d[i] = (s[i] - mean) * (s[i] - mean);
    float scale = inverse_sqrt(sum_of(d, n) / (float)(is(46) ? n - A : n) + 1e-5f);
    for (int64_t i = 0; i < n; i++) {
        int64_t k = is(45) && i == A ? i + 1 : i;
        float ww = is(40) || (is(43) && i >= A) ? 1 : w[k];
        float bb = is(41) || (is(43) && i >= A) ? 0 : b[k];
        y[i] = (x[i] - mean) * scale * ww + bb;
    }
    if (is(44))
        y[0] = y[A];
}
