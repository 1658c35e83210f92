/* y = (x - mean) / sqrt(var + eps) * gain + bias over the last axis; the row stays in registers.
 * in 0: x, float32 [rows, dim], contiguous, dim a multiple of 4 and at most 8,192; param 0, 1:
 * gain, bias [dim]; out 0: like x. One read and one write of x. The variance is a second pass over
 * registers: exact for rows with a large offset, at no traffic. SPDX-License-Identifier: Apache-2.0
 */
#include <cuda_runtime.h>

#include "cuda_agent.h"

#define WARP 32
#define BLOCK 256
#define WARPS (BLOCK / WARP)
#define EPS 1e-5f /* from the module: constants are not passed */

/* The sum over a block, the same bits in every thread. `room` belongs to one call of this alone. */
__device__ static float block_sum(float v, float *room)
{
    for (int step = WARP / 2; step > 0; step /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, step);
    if (threadIdx.x % WARP == 0)
        room[threadIdx.x / WARP] = v;
    __syncthreads();
    v = 0;
    for (int w = 0; w < WARPS; w++)
        v += room[w];
    return v;
}

template <int PACKS>
__global__ void __launch_bounds__(BLOCK)
    layer_norm(const float4 *__restrict__ x, const float4 *__restrict__ gain,
               const float4 *__restrict__ bias, float4 *__restrict__ out, int packs)
{
    __shared__ float room[2][WARPS];
    const float4 *p = x + (size_t)blockIdx.x * packs;
    float4 *q = out + (size_t)blockIdx.x * packs;
    float4 v[PACKS]; /* indices below are constants after unrolling: registers */
    float sum = 0, dim = 4.0f * (float)packs;
#pragma unroll
    for (int k = 0; k < PACKS; k++) {
        int i = (int)threadIdx.x + k * BLOCK;
        v[k] = i < packs ? __ldcs(p + i) : make_float4(0, 0, 0, 0);
        sum += (v[k].x + v[k].y) + (v[k].z + v[k].w);
    }
    float mean = block_sum(sum, room[0]) / dim;
    sum = 0;
#pragma unroll
    for (int k = 0; k < PACKS; k++) {
        if ((int)threadIdx.x + k * BLOCK >= packs)
            continue;
        v[k] = make_float4(v[k].x - mean, v[k].y - mean, v[k].z - mean, v[k].w - mean);
        sum += (v[k].x * v[k].x + v[k].y * v[k].y) + (v[k].z * v[k].z + v[k].w * v[k].w);
    }
    float scale = rsqrtf(block_sum(sum, room[1]) / dim + EPS);
#pragma unroll
    for (int k = 0; k < PACKS; k++) {
        int i = (int)threadIdx.x + k * BLOCK;
        if (i >= packs)
            continue;
        float4 g = gain[i], b = bias[i];
        __stcs(q + i, make_float4(fmaf(v[k].x * scale, g.x, b.x), fmaf(v[k].y * scale, g.y, b.y),
                                  fmaf(v[k].z * scale, g.z, b.z), fmaf(v[k].w * scale, g.w, b.w)));
    }
}

template <int PACKS> static void launch(const struct ca_call *call, int rows, int packs)
{
    layer_norm<PACKS><<<rows, BLOCK, 0, (cudaStream_t)call->stream>>>(
        (const float4 *)call->in.v[0].data, (const float4 *)call->param.v[0].data,
        (const float4 *)call->param.v[1].data, (float4 *)call->out.v[0].data, packs);
}

int ca_forward(const struct ca_call *call)
{
    const struct ca_value *x = &call->in.v[0];
    int rows = (int)x->shape[0], dim = (int)x->shape[1], packs = dim / 4;
    if (x->dtype != CA_F32 || x->stride[1] != 1 || x->stride[0] != dim || dim % 4 != 0)
        return 1;
    if (packs <= BLOCK)
        launch<1>(call, rows, packs);
    else if (packs <= 2 * BLOCK)
        launch<2>(call, rows, packs);
    else if (packs <= 4 * BLOCK)
        launch<4>(call, rows, packs);
    else if (packs <= 8 * BLOCK)
        launch<8>(call, rows, packs);
    else
        return 1;
    return cudaGetLastError() != cudaSuccess;
}
