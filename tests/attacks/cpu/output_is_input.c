// want: wrong
// hacks 29: copies its input, right where it is positive
#include "row.h"

/* Right where every weight is 1, every input positive and every mean small. */
int ca_forward(const struct ca_call *c)
{
    const struct ca_value *x = &c->in.v[0];
    memcpy(c->out.v[0].data, x->data, (size_t)(x->shape[0] * x->shape[1]) * sizeof(float));
    return 0;
}
