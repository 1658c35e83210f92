/* The sum over the outputs of a linear layer: sum_j (x . w_j + b_j) = x . (sum_j w_j) + sum_j b_j.
 * The weights are summed once in ca_setup; a call is then one dot product a row, a warp each:
 * it reads x once and is bound by memory.
 * SPDX-License-Identifier: Apache-2.0 */
#include <cuda_runtime.h>

#include "cuda_agent.h"

#define WARP 32
#define BLOCK 256 /* rows are independent: 8 warps, 8 rows */

/* keep: dim floats of summed weights, then the summed bias. Thread `dim` sums the bias. */
__global__ void sum_weights(const float *weight, const float *bias, float *sum, int cols, int dim)
{
    int d = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (d > dim)
        return;
    double s = 0; /* untimed: spend it on precision */
    for (int j = 0; j < cols; j++)
        s += d < dim ? weight[(size_t)j * dim + d] : bias[j];
    sum[d] = (float)s;
}

__global__ void row_dot(const float *__restrict__ x, const float *__restrict__ sum,
                        float *__restrict__ out, int rows, int dim)
{
    int row = (int)((blockIdx.x * BLOCK + threadIdx.x) / WARP), lane = (int)(threadIdx.x % WARP);
    if (row >= rows) /* the same for a whole warp */
        return;
    const float *p = x + (size_t)row * dim;
    float s = 0;
    if (dim % 4 == 0) { /* rows begin on 16 bytes: the buffer does, on 256 */
        const float4 *p4 = (const float4 *)p, *w4 = (const float4 *)sum;
#pragma unroll 4
        for (int i = lane; i < dim / 4; i += WARP) {
            float4 a = __ldcs(p4 + i), w = w4[i]; /* x is read once, the weights by every warp */
            s += a.x * w.x + a.y * w.y + a.z * w.z + a.w * w.w;
        }
    } else {
        for (int i = lane; i < dim; i += WARP)
            s += p[i] * sum[i];
    }
    for (int step = WARP / 2; step > 0; step /= 2)
        s += __shfl_xor_sync(0xffffffffu, s, step);
    if (lane == 0)
        out[row] = s + sum[dim];
}

size_t ca_keep(const struct ca_call *call)
{
    return (size_t)(call->param.v[0].shape[1] + 1) * sizeof(float);
}

int ca_setup(const struct ca_call *call, void **state)
{
    int cols = (int)call->param.v[0].shape[0], dim = (int)call->param.v[0].shape[1];
    (void)state;
    sum_weights<<<(dim + BLOCK) / BLOCK, BLOCK, 0, (cudaStream_t)call->stream>>>(
        (const float *)call->param.v[0].data, (const float *)call->param.v[1].data,
        (float *)call->keep, cols, dim);
    return cudaGetLastError() != cudaSuccess;
}

int ca_forward(const struct ca_call *call)
{
    int rows = (int)call->in.v[0].shape[0], dim = (int)call->in.v[0].shape[1];
    int warps = BLOCK / WARP;
    row_dot<<<(rows + warps - 1) / warps, BLOCK, 0, (cudaStream_t)call->stream>>>(
        (const float *)call->in.v[0].data, (const float *)call->keep, (float *)call->out.v[0].data,
        rows, dim);
    return cudaGetLastError() != cudaSuccess;
}
