// task softmax.py
// rows 72 501
// fault  40 maximum_skipped 0 0 0 0
// fault  41 maximum_of_a_part 1 400 0 0
// fault  42 normaliser_of_another_row 0 71 0 71
// fault  43 not_normalised_from_column 1 500 0 0
// fault  44 exp_by_a_series 2 5 0 0
// fault  45 last_columns_not_in_the_sum 1 250 0 0
// fault  46 column_of_the_next 0 499 0 0
// sums 501
// honest 140 online 0 0 0 0
// honest 141 exp2 0 0 0 0
// honest 142 online_by_blocks 1 200 0 0
#include "mutant.h"

static int64_t rows(const struct ca_call *c)
{
    return c->in.v[0].shape[0];
}

static float series(float x) /* exp(x) = exp(x / 16)^16 */
{
    float y = x / 16, s = 1, t = 1;
    if (y < -6)
        return 0;
    for (int64_t i = 1; i <= A; i++)
        s += t *= y / (float)i;
    for (int i = 0; i < 4; i++)
        s *= s;
    return s;
}

static float power(float x)
{
    return is(44) ? series(x) : is(141) ? exp2f(x * 1.44269504f) : expf(x);
}

static float maximum(const float *x, int64_t n)
{
    float m = -INFINITY;
    for (int64_t i = 0; i < n; i++)
        m = fmaxf(m, x[i]);
    return m;
}

/* Maximum and sum in one pass, block by block. */
static float online(const float *x, int64_t n, int64_t block, float *ret_m)
{
    float m = -INFINITY, s = 0;
    for (int64_t i = 0; i < n; i += block) {
        float now = fmaxf(m, maximum(x + i, i + block < n ? block : n - i));
        s *= m == now ? 1 : expf(m - now);
        for (int64_t k = i; k < i + block && k < n; k++)
            s += expf(x[k] - now);
        m = now;
    }
    *ret_m = m;
    return s;
}

static void row(const struct ca_call *c, int64_t r, void *const *to)
{
    int64_t n = c->in.v[0].shape[1];
    const float *x = (const float *)c->in.v[0].data + r * n;
    const float *other = is(42) && r == A ? (const float *)c->in.v[0].data + B * n : x;
    float e[512], *y = to[0], m, s;
    if (is(140) || is(142)) {
        s = online(x, n, is(142) ? A : 1, &m);
    } else {
        m = is(40) ? 0 : maximum(x, is(41) ? A : n);
        float mo = other == x ? m : maximum(other, n);
        for (int64_t i = 0; i < n; i++)
            e[i] = power(other[i] - mo);
        s = sum_of(e, is(45) ? n - A : n);
    }
    for (int64_t i = 0; i < n; i++)
        y[i] = power(x[is(46) && i == A ? i + 1 : i] - m) / (is(43) && i >= A ? 1 : s);
}
