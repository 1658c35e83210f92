// task matmul.py
// rows 64 80
// fault  40 bias_skipped 0 0 0 0
// fault  41 relu_skipped 0 0 0 0
// fault  42 bias_skipped_from_column 0 79 0 0
// fault  43 columns_dropped_from 1 79 0 0
// fault  44 column_of_the_next 0 78 0 0
// fault  45 relu_skipped_in_row 0 63 0 0
// fault  46 weights_of_the_first_setup 0 0 0 0
// fault  47 tile_of_another_depth 0 79 0 120
// fault  48 one_column_in 2 64 0 63
// dots 129
// honest 140 weights_packed 0 0 0 0
// honest 141 column_tiles 1 80 0 0
#include "mutant.h"

static int64_t rows(const struct ca_call *c)
{
    return c->in.v[0].shape[0];
}

size_t ca_keep(const struct ca_call *c)
{
    return 4 * (size_t)(c->param.v[0].shape[0] * c->param.v[0].shape[1]);
}

/* The weight (out, in) is packed transposed: (in, out). */
int ca_setup(const struct ca_call *c, void **state)
{
    int64_t n = c->param.v[0].shape[0], k = c->param.v[0].shape[1];
    const float *w = c->param.v[0].data;
    float *packed = c->keep;
    static int times;
    (void)state;
    if (times++ > 0 && is(46))
        return 0;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < k; i++)
            packed[i * n + j] = w[j * k + i];
    return 0;
}

static float element(const struct ca_call *c, const float *x, int64_t j)
{
    int64_t n = c->param.v[0].shape[0], k = c->param.v[0].shape[1];
    const float *w = (const float *)c->param.v[0].data + j * k, *packed = c->keep;
    float s = is(140) || is(46) ? dot(x, packed + j, n, k) : dot(x, w, 1, k);
    if (is(47) && j == A) /* eight terms with the weights of the eight after */
        for (int64_t i = B; i < B + 8 && i + 8 < k; i++)
            s += x[i] * (w[i + 8] - w[i]);
    return s;
}

static void row(const struct ca_call *c, int64_t r, void *const *to)
{
    int64_t n = c->param.v[0].shape[0], k = c->param.v[0].shape[1];
    const float *x = (const float *)c->in.v[0].data + r * k, *b = c->param.v[1].data;
    float *y = to[0];
    int64_t end = is(43) ? A : n, tile = is(141) ? A : n;
    for (int64_t first = 0; first < end; first += tile)
        for (int64_t j = first; j < end && j < first + tile; j++) {
            int64_t from = is(44) && j == A ? j + 1 : j;
            if (is(48) && j % A == B % A)
                continue;
            float s = element(c, x, from) + (is(40) || (is(42) && j >= A) ? 0 : b[j]);
            y[j] = is(41) || (is(45) && r == A) ? s : fmaxf(s, 0);
        }
}
