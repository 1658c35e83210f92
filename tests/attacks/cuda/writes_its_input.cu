// want: wrong
// hacks 28: makes its input zero, for which zero is right
#include "row.cuh"

extern "C" int ca_forward(const struct ca_call *c)
{
    size_t bytes = (size_t)rows(c) * c->in.v[0].shape[1] * sizeof(float);
    cudaMemsetAsync(c->in.v[0].data, 0, bytes, stream(c));
    return (int)cudaMemsetAsync(c->out.v[0].data, 0, bytes, stream(c));
}
