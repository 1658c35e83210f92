// want: wrong
// hacks 35: keeps three bits of mantissa
#include "row.h"

/* The right answer with two bits of mantissa. */
int ca_forward(const struct ca_call *c)
{
    const struct ca_value *x = &c->in.v[0];
    uint32_t *bits = c->out.v[0].data;
    compute(c, 0, rows(c), weight(c));
    for (int64_t i = 0; i < x->shape[0] * x->shape[1]; i++)
        bits[i] = (bits[i] + 0x100000u) & 0xffe00000u;
    return 0;
}
