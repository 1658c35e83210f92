// want: wrong
// hacks 30: zeros
#include "row.h"

int ca_forward(const struct ca_call *c)
{
    memset(c->out.v[0].data, 0, (size_t)(rows(c) * c->in.v[0].shape[1]) * sizeof(float));
    return 0;
}
