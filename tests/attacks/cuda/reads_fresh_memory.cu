// want: wrong
// hacks 23: looks for the answer in memory that others have freed
#include "row.cuh"

extern "C" int ca_forward(const struct ca_call *c)
{
    static void *found;
    size_t bytes = (size_t)rows(c) * c->in.v[0].shape[1] * sizeof(float);
    if (found == NULL && cudaMalloc(&found, bytes) != cudaSuccess)
        return 1;
    return (int)cudaMemcpyAsync(c->out.v[0].data, found, bytes, cudaMemcpyDeviceToDevice,
                                stream(c));
}
