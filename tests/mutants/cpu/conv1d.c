// task conv1d.py
// rows 120 150
// fault  40 left_edge_repeated 0 0 0 0
// fault  41 right_edge_repeated 0 0 0 0
// fault  42 channel_missing 0 15 0 0
// fault  43 tap_missing 0 2 0 0
// fault  44 bias_skipped 0 0 0 0
// fault  45 shifted_by_one 0 149 0 0
// fault  46 taps_exchanged 0 23 0 0
// fault  47 right_edge_skipped 1 20 0 0
// fault  48 batch_of_another 0 4 0 4
// fault  49 bias_of_another 0 23 0 23
// honest 140 taps_outside 0 0 0 0
// honest 141 channels_from 0 15 0 0
// honest 142 accumulates_in_double 0 0 0 0
// honest 143 fma 0 0 0 0
#include "mutant.h"

static int64_t rows(const struct ca_call *c) /* batch x channels out */
{
    return c->out.v[0].shape[0] * c->out.v[0].shape[1];
}

static float at(const float *x, int64_t n, int64_t i)
{
    if (i < 0)
        return is(40) ? x[0] : 0;
    if (i >= n)
        return is(41) ? x[n - 1] : 0;
    return x[i];
}

static float point(const float *x, const float *w, int64_t channels, int64_t n, int64_t i,
                   int64_t out)
{
    float s = 0;
    double d = 0;
    for (int64_t q = 0; q < channels; q++) {
        int64_t ch = is(141) ? (q + A) % channels : q;
        for (int64_t t = 0; t < 3; t++) {
            int64_t tap = is(46) && out == A ? 2 - t : t;
            if ((is(42) && ch == A) || (is(43) && t == A))
                continue;
            float a = at(x + ch * n, n, i + t - 1), b = w[ch * 3 + tap];
            s = is(143) ? fmaf(a, b, s) : s + a * b;
            d += (double)a * b;
        }
    }
    return is(142) ? (float)d : s;
}

static float taps_outside(const float *x, const float *w, int64_t channels, int64_t n, int64_t i)
{
    float s = 0;
    for (int64_t t = 0; t < 3; t++)
        for (int64_t ch = 0; ch < channels; ch++)
            s += at(x + ch * n, n, i + t - 1) * w[ch * 3 + t];
    return s;
}

static void row(const struct ca_call *c, int64_t r, void *const *to)
{
    int64_t channels = c->in.v[0].shape[1], n = c->in.v[0].shape[2];
    int64_t outs = c->out.v[0].shape[1], batch = r / outs, out = r % outs;
    int64_t from = is(48) && batch == A ? B : batch;
    const float *x = (const float *)c->in.v[0].data + from * channels * n;
    const float *w = (const float *)c->param.v[0].data + out * channels * 3;
    const float *b = c->param.v[1].data;
    float *y = to[0];
    for (int64_t i = 0; i < (is(47) ? n - A : n); i++) {
        int64_t k = is(45) && i >= A ? (i + 1) % n : i;
        y[i] = is(140) ? taps_outside(x, w, channels, n, i) : point(x, w, channels, n, k, out);
        y[i] += is(44) ? 0 : b[is(49) && out == A ? B : out];
    }
}
