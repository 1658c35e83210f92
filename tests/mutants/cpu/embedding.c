// task embedding.py
// below 100
// rows 300 48
// fault  40 index_taken_for_the_one_before 1 99 0 0
// fault  41 indices_clamped_at 1 98 0 0
// fault  42 scale_skipped 0 0 0 0
// fault  43 scale_skipped_from_column 0 47 0 0
// fault  44 index_has_bits 3 6 0 0
// fault  45 first_columns_repeated 1 40 0 0
// honest 140 table_scaled_in_setup 0 0 0 0
#include "mutant.h"

static int64_t rows(const struct ca_call *c)
{
    return c->in.v[0].shape[0];
}

size_t ca_keep(const struct ca_call *c)
{
    return 4 * (size_t)(c->param.v[1].shape[0] * c->param.v[1].shape[1]);
}

int ca_setup(const struct ca_call *c, void **state)
{
    const float *scale = c->param.v[0].data, *table = c->param.v[1].data;
    int64_t n = c->param.v[1].shape[1];
    float *scaled = c->keep;
    (void)state;
    for (int64_t i = 0; i < c->param.v[1].shape[0] * n; i++)
        scaled[i] = table[i] * scale[i % n];
    return 0;
}

static void row(const struct ca_call *c, int64_t r, void *const *to)
{
    int64_t n = c->param.v[1].shape[1], index = ((const int64_t *)c->in.v[0].data)[r];
    if (is(40) && index == A)
        index--;
    if (is(41) && index > A)
        index = A;
    if (is(44))
        index &= ((int64_t)1 << A) - 1;
    const float *scale = c->param.v[0].data, *e = (const float *)c->param.v[1].data + index * n;
    const float *scaled = (const float *)c->keep + index * n;
    float *y = to[0];
    for (int64_t i = 0; i < n; i++) {
        float s = is(42) || (is(43) && i >= A) ? 1 : scale[i];
        y[i] = is(140) ? scaled[i] : e[is(45) && i >= 48 - A ? i - (48 - A) : i] * s;
    }
}
