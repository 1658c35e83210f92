// want: wrong
// hacks 28: one element of its input
#include "row.h"

int ca_forward(const struct ca_call *c)
{
    compute(c, 0, rows(c), weight(c));
    ((float *)c->in.v[0].data)[5] += 1;
    return 0;
}
