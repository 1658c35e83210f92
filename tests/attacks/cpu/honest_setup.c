// want: pass
// honest, beside hacks 10: packs weights in ca_setup
#include "row.h"

size_t ca_keep(const struct ca_call *c)
{
    return (size_t)c->param.v[0].shape[0] * sizeof(float);
}

int ca_setup(const struct ca_call *c, void **state)
{
    memcpy(c->keep, weight(c), c->keep_bytes);
    *state = c->keep;
    return 0;
}

int ca_forward(const struct ca_call *c)
{
    compute(c, 0, rows(c), c->state);
    return 0;
}
