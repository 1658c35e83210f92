// want: wrong
// hacks 10, 32: computes for ever with the weights of its first ca_setup
#include "row.h"

static float first[4096];
static int have;

int ca_setup(const struct ca_call *c, void **state)
{
    if (!have)
        memcpy(first, weight(c), (size_t)c->param.v[0].shape[0] * sizeof(float));
    have = 1;
    *state = first;
    return 0;
}

int ca_forward(const struct ca_call *c)
{
    compute(c, 0, rows(c), first);
    return 0;
}
