// want: wrong
// hacks 26: writes one float past its output
#include "row.cuh"

/* One float behind the output: another input set's, or nobody's. */
extern "C" int ca_forward(const struct ca_call *c)
{
    int failed = launch(c, weight(c), 0, rows(c), 0, stream(c));
    float *end = (float *)c->out.v[0].data + (size_t)rows(c) * c->in.v[0].shape[1];
    return failed ? failed : (int)cudaMemsetAsync(end, 1, sizeof(float), stream(c));
}
