// task cumsum.py
// rows 48 300
// fault  40 carry_missing_at_block 1 9 0 0
// fault  41 carry_of_the_block_before 2 9 0 0
// fault  42 exclusive_from_column 0 299 0 0
// fault  43 carry_twice_at_block 1 9 0 0
// fault  44 carry_of_another_row 1 47 1 9
// fault  45 term_missing 0 299 0 0
// fault  46 low_precision 3 10 0 0
// fault  47 lost_now_and_then 2 3000 0 0
// honest 140 blocks 1 300 0 0
// honest 141 in_double 0 0 0 0
#include "mutant.h"

static int64_t rows(const struct ca_call *c)
{
    return c->in.v[0].shape[0];
}

static void row(const struct ca_call *c, int64_t r, void *const *to)
{
    int64_t n = c->in.v[0].shape[1], block = is(140) ? A : 32;
    const float *x = (const float *)c->in.v[0].data + r * n;
    float *y = to[0], carry = 0, before = 0;
    double d = 0;
    for (int64_t k = 0, first = 0; first < n; first += block, k++) {
        float s = 0, use = is(41) && k == A ? before : is(43) && k == A ? 2 * carry : carry;
        if ((is(40) && k == A) || (is(44) && r == A && k == B))
            use = is(44) ? x[k] : 0;
        for (int64_t i = first; i < n && i < first + block; i++) {
            float t = (is(45) && i == A) || (is(47) && ticks() % A == 0) ? 0 : x[i];
            if (is(42) && i >= A)
                y[i] = use + s;
            s += t;
            d += t;
            if (is(46))
                s = keep_bits(s, (int)A);
            if (!(is(42) && i >= A))
                y[i] = is(141) ? (float)d : use + s;
        }
        before = carry;
        carry = use + s;
    }
}
