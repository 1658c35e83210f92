// task max_pool.py
// rows 32 256
// fault  40 left_column_unseen 0 0 0 0
// fault  41 right_edge_unseen 0 0 0 0
// fault  42 top_row_unseen 0 0 0 0
// fault  43 padding_is_zero 0 0 0 0
// fault  44 corner_unseen 0 2 0 2
// fault  45 last_line_of_outputs_skipped 0 0 0 0
// fault  46 stride_off_from_column 1 14 0 0
// fault  47 window_of_the_next 0 254 0 0
// honest 140 columns_first 0 0 0 0
#include "mutant.h"

static int64_t rows(const struct ca_call *c) /* planes */
{
    return c->in.v[0].shape[0] * c->in.v[0].shape[1];
}

static float window(const float *x, int64_t h, int64_t w, int64_t top, int64_t left)
{
    float m = is(43) ? 0 : -INFINITY;
    for (int64_t k = 0; k < 9; k++) {
        int64_t di = is(140) ? k % 3 : k / 3, dj = is(140) ? k / 3 : k % 3;
        int64_t i = top + di, j = left + dj;
        if (i < 0 || j < 0 || i >= h || j >= w)
            continue;
        if ((is(40) && j == 0) || (is(41) && j == w - 1) || (is(42) && i == 0) ||
            (is(44) && di == A && dj == B))
            continue;
        m = fmaxf(m, x[i * w + j]);
    }
    return m;
}

static void row(const struct ca_call *c, int64_t r, void *const *to)
{
    int64_t h = c->in.v[0].shape[2], w = c->in.v[0].shape[3];
    int64_t oh = c->out.v[0].shape[2], ow = c->out.v[0].shape[3];
    const float *x = (const float *)c->in.v[0].data + r * h * w;
    float *y = to[0];
    for (int64_t k = 0; k < (is(45) ? (oh - 1) * ow : oh * ow); k++) {
        int64_t at = is(47) && k == A ? k + 1 : k, i = at / ow, j = at % ow;
        y[k] = window(x, h, w, 2 * i - 1, 2 * j - 1 + (is(46) && j >= A ? 1 : 0));
    }
}
