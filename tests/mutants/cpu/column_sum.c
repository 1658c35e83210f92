// task column_sum.py
// rows 64 1
// fault  40 block_missing 0 11 0 0
// fault  41 block_of_the_next_column 0 11 0 63
// fault  42 rows_from 1 700 0 0
// sums 777
// honest 140 by_blocks 1 300 0 0
#include "mutant.h"

static int64_t rows(const struct ca_call *c) /* one column is one element of the output */
{
    return c->in.v[0].shape[1];
}

static void row(const struct ca_call *c, int64_t r, void *const *to)
{
    int64_t n = c->in.v[0].shape[0], width = c->in.v[0].shape[1], block = is(140) ? A : 64;
    const float *x = c->in.v[0].data;
    float s = 0, part[800];
    int64_t n_parts = 0;
    if (!is(40) && !is(41) && !is(42) && !is(140)) {
        *(float *)to[0] = sum((struct terms){ x + r, NULL, width, 0, n });
        return;
    }
    for (int64_t first = is(42) ? A : 0; first < n; first += block, n_parts++) {
        int64_t len = first + block < n ? block : n - first;
        int64_t column = is(41) && n_parts == A && r == B ? (r + 1) % width : r;
        part[n_parts] = 0;
        for (int64_t i = first; i < first + len; i++)
            part[n_parts] += x[i * width + column];
        if (is(40) && n_parts == A)
            part[n_parts] = 0;
    }
    for (int64_t i = 0; i < n_parts; i++)
        s += part[i];
    *(float *)to[0] = s;
}
