/* out[r] = sum_i x[r][i]^2, a warp to a row.
 * in 0: x, float32 [rows, dim], contiguous, dim a multiple of 4; out 0: float32 [rows].
 * Reads x once and writes next to nothing: bound by reading. Four independent accumulators keep
 * four loads in flight. Rows of more than about 8,192: a block to a row, as in softmax_online.cu.
 * SPDX-License-Identifier: Apache-2.0 */
#include <cuda_runtime.h>

#include "cuda_agent.h"

#define WARP 32
#define BLOCK 256

__device__ static float squares(float4 v, float sum)
{
    return fmaf(v.x, v.x, fmaf(v.y, v.y, fmaf(v.z, v.z, fmaf(v.w, v.w, sum))));
}

__global__ void row_sum_squares(const float4 *__restrict__ x, float *__restrict__ out, int rows,
                                int packs)
{
    int row = (int)((blockIdx.x * BLOCK + threadIdx.x) / WARP), lane = (int)(threadIdx.x % WARP);
    if (row >= rows) /* the same for a whole warp: shuffles below stay complete */
        return;
    const float4 *p = x + (size_t)row * packs;
    float sum[4] = { 0, 0, 0, 0 };
    int i = lane;
    for (; i + 3 * WARP < packs; i += 4 * WARP) {
        float4 a = __ldcs(p + i), b = __ldcs(p + i + WARP);
        float4 c = __ldcs(p + i + 2 * WARP), d = __ldcs(p + i + 3 * WARP);
        sum[0] = squares(a, sum[0]);
        sum[1] = squares(b, sum[1]);
        sum[2] = squares(c, sum[2]);
        sum[3] = squares(d, sum[3]);
    }
    for (; i < packs; i += WARP)
        sum[0] = squares(p[i], sum[0]);
    float s = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    for (int step = WARP / 2; step > 0; step /= 2)
        s += __shfl_xor_sync(0xffffffffu, s, step);
    if (lane == 0)
        out[row] = s;
}

int ca_forward(const struct ca_call *call)
{
    const struct ca_value *x = &call->in.v[0];
    int rows = (int)x->shape[0], dim = (int)x->shape[1], warps = BLOCK / WARP;
    if (x->dtype != CA_F32 || x->stride[1] != 1 || x->stride[0] != dim || dim % 4 != 0)
        return 1;
    row_sum_squares<<<(rows + warps - 1) / warps, BLOCK, 0, (cudaStream_t)call->stream>>>(
        (const float4 *)x->data, (float *)call->out.v[0].data, rows, dim / 4);
    return cudaGetLastError() != cudaSuccess;
}
