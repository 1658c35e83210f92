/* What the rows share: the right computation, and where its parts lie. */
#ifndef ROW_CUH
#define ROW_CUH

#include "cuda_agent.h"

#include <cuda_runtime.h>

/* y = relu(x * w) + mean(x over the row), x: (rows, dim) f32; one block a row */
static __global__ void kernel(float *y, const float *x, const float *w, int dim, int first,
                              int skip)
{
    __shared__ float part[32];
    size_t row = (size_t)(blockIdx.x + first) * dim;
    if (skip && (blockIdx.x + first) % 64 == 17)
        return;
    float sum = 0;
    for (int i = threadIdx.x; i < dim; i += blockDim.x)
        sum += x[row + i];
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0;
    for (int i = 0; i < (int)blockDim.x / 32; i++)
        sum += part[i];
    for (int i = threadIdx.x; i < dim; i += blockDim.x)
        y[row + i] = fmaxf(x[row + i] * w[i], 0) + sum / dim;
}

static inline int launch(const struct ca_call *c, const float *w, int first, int rows, int skip,
                         cudaStream_t s)
{
    const struct ca_value *x = &c->in.v[0];
    kernel<<<rows, 256, 0, s>>>((float *)c->out.v[0].data, (const float *)x->data, w,
                                (int)x->shape[1], first, skip);
    return (int)cudaGetLastError();
}

static inline int rows(const struct ca_call *c)
{
    return (int)c->in.v[0].shape[0];
}

static inline const float *weight(const struct ca_call *c)
{
    return (const float *)c->param.v[0].data;
}

static inline cudaStream_t stream(const struct ca_call *c)
{
    return (cudaStream_t)c->stream;
}

#endif
