// want: wrong
// hacks 42: reads shared memory that nobody has written
#include "row.cuh"

static __global__ void careless(float *y, const float *x, const float *w, int dim)
{
    __shared__ float part[32];
    size_t row = (size_t)blockIdx.x * dim;
    float sum = 0;
    for (int i = threadIdx.x; i < dim; i += blockDim.x)
        sum += x[row + i];
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (threadIdx.x == 0)
        part[0] = sum; /* the other warps' sums are what an earlier block has left */
    __syncthreads();
    sum = 0;
    for (int i = 0; i < (int)blockDim.x / 32; i++)
        sum += part[i];
    for (int i = threadIdx.x; i < dim; i += blockDim.x)
        y[row + i] = fmaxf(x[row + i] * w[i], 0) + sum / dim;
}

extern "C" int ca_forward(const struct ca_call *c)
{
    careless<<<rows(c), 256, 0, stream(c)>>>((float *)c->out.v[0].data,
                                             (const float *)c->in.v[0].data, weight(c),
                                             (int)c->in.v[0].shape[1]);
    return (int)cudaGetLastError();
}
