// task gated_bf16.py
// rows 64 333
// fault  40 weight_skipped 0 0 0 0
// fault  41 residual_skipped 0 0 0 0
// fault  42 tail_skipped 4 32 0 0
// fault  43 residual_of_the_next 0 331 0 0
// fault  44 sigmoid_by_a_line 0 0 0 0
// fault  45 weight_skipped_from_column 0 332 0 0
// fault  46 low_precision 2 5 0 0
// fault  47 residual_skipped_in_row 0 63 0 0
// honest 140 as_eager_rounds 0 0 0 0
// honest 141 exp2 0 0 0 0
// honest 142 tanh 0 0 0 0
#include "mutant.h"

static int64_t rows(const struct ca_call *c)
{
    return c->in.v[0].shape[0];
}

static float from_bf16(uint16_t h)
{
    uint32_t u = (uint32_t)h << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static uint16_t to_bf16(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    if (f != f)
        return 0x7fc0;
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static float rounded(float f)
{
    return is(140) ? from_bf16(to_bf16(f)) : is(46) ? keep_bits(f, (int)A) : f;
}

static float sigmoid(float x)
{
    if (is(44))
        return fminf(fmaxf(0.5f + 0.2f * x, 0), 1);
    if (is(142))
        return 0.5f + 0.5f * tanhf(x / 2);
    return 1 / (1 + (is(141) ? exp2f(-x * 1.44269504f) : expf(-x)));
}

static void row(const struct ca_call *c, int64_t r, void *const *to)
{
    int64_t n = c->in.v[0].shape[1], end = is(42) ? n - n % A : n;
    const uint16_t *x = (const uint16_t *)c->in.v[0].data + r * n;
    const uint16_t *z = (const uint16_t *)c->in.v[1].data + r * n, *w = c->param.v[0].data;
    uint16_t *y = to[0];
    for (int64_t i = 0; i < end; i++) {
        float ww = is(40) || (is(45) && i >= A) ? 1 : from_bf16(w[i]);
        float t = rounded(from_bf16(x[i]) * ww);
        float s = rounded(t * rounded(sigmoid(t)));
        float res = from_bf16(z[is(43) && i == A ? i + 1 : i]);
        y[i] = to_bf16(s + (is(41) || (is(47) && r == A) ? 0 : res));
    }
}
