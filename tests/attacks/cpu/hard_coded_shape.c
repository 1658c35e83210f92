// want: pass
// honest, beside hacks 37: knows its shape when it is compiled
#include "row.h"

int ca_forward(const struct ca_call *c)
{
    if (c->in.v[0].shape[0] != 1024 || c->in.v[0].shape[1] != 1024)
        return 1;
    compute(c, 0, 1024, weight(c));
    return 0;
}
