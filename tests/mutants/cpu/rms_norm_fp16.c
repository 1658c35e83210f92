// task rms_norm_fp16.py
// rows 80 256
// fault  40 weight_skipped 0 0 0 0
// fault  41 weight_skipped_from_column 0 255 0 0
// fault  42 statistics_of_row 0 79 0 79
// fault  43 last_column_wrong 0 254 0 0
// fault  44 epsilon_is_larger 1 3 0 0
// halfs 256
// honest 140 squares_in_half_range 0 0 0 0
#include "mutant.h"

static int64_t rows(const struct ca_call *c)
{
    return c->in.v[0].shape[0];
}

static void row(const struct ca_call *c, int64_t r, void *const *to)
{
    int64_t n = c->in.v[0].shape[1];
    const _Float16 *x = (const _Float16 *)c->in.v[0].data + r * n, *w = c->param.v[0].data;
    const _Float16 *from = is(42) && r == A ? (const _Float16 *)c->in.v[0].data + B * n : x;
    float sq[512], scale = is(140) ? 0.125f : 1, eps = 1e-5f;
    _Float16 *y = to[0];
    for (int64_t i = 0; i < n; i++)
        sq[i] = (float)from[i] * scale * ((float)from[i] * scale);
    for (int64_t i = 0; is(44) && i < 2 + A; i++)
        eps *= 10;
    float inv = 1 / sqrtf(sum_of(sq, n) / (scale * scale) / (float)n + eps);
    for (int64_t i = 0; i < n; i++)
        y[i] = (_Float16)((float)x[i] * inv * (is(40) || (is(41) && i >= A) ? 1 : (float)w[i]));
    if (is(43))
        y[n - 1] = y[A];
}
