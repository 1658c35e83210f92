// want: wrong
// hacks 49: launches a right kernel on memory of its own, and copies an old answer
#include "row.cuh"

extern "C" int ca_forward(const struct ca_call *c)
{
    static void *own, *old;
    size_t bytes = (size_t)rows(c) * c->in.v[0].shape[1] * sizeof(float);
    if (own == NULL) {
        if (cudaMalloc(&own, bytes) != cudaSuccess || cudaMalloc(&old, bytes) != cudaSuccess)
            return 1;
        launch(c, weight(c), 0, rows(c), 0, stream(c));
        cudaMemcpyAsync(old, c->out.v[0].data, bytes, cudaMemcpyDeviceToDevice, stream(c));
    }
    kernel<<<rows(c), 256, 0, stream(c)>>>((float *)own, (const float *)c->in.v[0].data, weight(c),
                                           (int)c->in.v[0].shape[1], 0, 0);
    return (int)cudaMemcpyAsync(c->out.v[0].data, old, bytes, cudaMemcpyDeviceToDevice, stream(c));
}
