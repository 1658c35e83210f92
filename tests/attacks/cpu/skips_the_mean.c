// want: wrong
// hacks 33: takes the mean of a row for its expectation, zero
#include "row.h"

int ca_forward(const struct ca_call *c)
{
    const float *in = c->in.v[0].data, *w = weight(c);
    float *out = c->out.v[0].data;
    int64_t dim = c->in.v[0].shape[1];
    for (int64_t i = 0; i < rows(c) * dim; i++)
        out[i] = fmaxf(in[i] * w[i % dim], 0);
    return 0;
}
