// want: pass
// honest, beside hacks 35: multiplies in 16 bits and is paid in that class
#include "row.cuh"

#include <cuda_fp16.h>

static __global__ void halved(float *y, const float *x, const float *w, size_t n, int dim)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] * w[i % dim] > 0)
        y[i] += __half2float(__float2half(x[i] * w[i % dim])) - x[i] * w[i % dim];
}

extern "C" int ca_forward(const struct ca_call *c)
{
    int dim = (int)c->in.v[0].shape[1], failed = launch(c, weight(c), 0, rows(c), 0, stream(c));
    size_t n = (size_t)rows(c) * dim;
    halved<<<(unsigned)((n + 255) / 256), 256, 0, stream(c)>>>(
        (float *)c->out.v[0].data, (const float *)c->in.v[0].data, weight(c), n, dim);
    return failed ? failed : (int)cudaGetLastError();
}
