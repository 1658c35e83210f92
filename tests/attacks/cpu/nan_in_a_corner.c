// want: wrong
// hacks 38: one NaN
#include "row.h"

int ca_forward(const struct ca_call *c)
{
    compute(c, 0, rows(c), weight(c));
    ((float *)c->out.v[0].data)[rows(c) * c->in.v[0].shape[1] - 1] = NAN;
    return 0;
}
