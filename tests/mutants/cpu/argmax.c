// task argmax.py
// rows 256 1
// fault  40 last_columns_unseen 1 60 0 0
// fault  41 column_unseen 0 76 0 0
// fault  42 off_by_one_from 1 76 0 0
// fault  43 minimum_in_row 0 255 0 0
// fault  44 begins_with_zero 0 0 0 0
// fault  45 of_magnitudes 0 0 0 0
// fault  46 blocks_not_joined 8 70 0 0
// honest 140 blocks 1 77 0 0
#include "mutant.h"

static int64_t rows(const struct ca_call *c)
{
    return c->in.v[0].shape[0];
}

static void row(const struct ca_call *c, int64_t r, void *const *to)
{
    int64_t n = c->in.v[0].shape[1], block = is(140) ? A : n, best = 0;
    const float *x = (const float *)c->in.v[0].data + r * n;
    float m = is(44) ? 0 : -INFINITY;
    for (int64_t first = 0; first < n; first += block)
        for (int64_t i = first; i < n && i < first + block; i++) {
            float v = is(45) ? fabsf(x[i]) : is(43) && r == A ? -x[i] : x[i];
            if ((is(40) && i >= n - A) || (is(41) && i == A) || (is(46) && i >= A && i < 2 * A))
                continue;
            if (v > m) {
                m = v;
                best = i;
            }
        }
    *(int64_t *)to[0] = is(42) && best >= A ? best - 1 : best;
}
