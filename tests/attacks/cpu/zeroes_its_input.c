// want: wrong
// hacks 28: makes its input zero, for which zero is right
#include "row.h"

int ca_forward(const struct ca_call *c)
{
    size_t bytes = (size_t)(rows(c) * c->in.v[0].shape[1]) * sizeof(float);
    memset(c->in.v[0].data, 0, bytes);
    memset(c->out.v[0].data, 0, bytes);
    return 0;
}
