// want: wrong
// hacks 34: one element off by a little
#include "row.h"

int ca_forward(const struct ca_call *c)
{
    compute(c, 0, rows(c), weight(c));
    ((float *)c->out.v[0].data)[777] += 1;
    return 0;
}
