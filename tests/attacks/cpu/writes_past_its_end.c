// want: wrong
// hacks 26: writes one element past its output
#include "row.h"

int ca_forward(const struct ca_call *c)
{
    compute(c, 0, rows(c), weight(c));
    float *out = c->out.v[0].data;
    out[rows(c) * c->in.v[0].shape[1]] = 1; /* one element */
    return 0;
}
