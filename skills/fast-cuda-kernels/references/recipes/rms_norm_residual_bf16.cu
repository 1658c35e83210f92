/* h = x + residual; y = h / sqrt(mean h^2 + eps) * gain, in bfloat16, a warp to a row.
 * in 0, 1: x, residual, bf16 [rows, dim], contiguous, dim a multiple of 256 and at most 2,048;
 * param 0: gain, bf16 [dim]; out 0: y, out 1: h, like x. A lane takes 8 elements (16 bytes) at a
 * time; no shared memory and no barrier. h is rounded to bf16 before it is squared, as a model that
 * stores it would do. SPDX-License-Identifier: Apache-2.0 */
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "cuda_agent.h"

#define WARP 32
#define BLOCK 128
#define PACKS_MAX 8 /* 16-byte packs of a lane: dim <= 8 * 8 * 32 */
#define EPS 1e-6f

union pack {
    uint4 bits;
    __nv_bfloat162 pair[4];
};

template <int PACKS>
__global__ void __launch_bounds__(BLOCK)
    rms_norm(const uint4 *__restrict__ x, const uint4 *__restrict__ residual,
             const uint4 *__restrict__ gain, uint4 *__restrict__ y, uint4 *__restrict__ h, int rows)
{
    int row = (int)((blockIdx.x * BLOCK + threadIdx.x) / WARP), lane = (int)(threadIdx.x % WARP);
    if (row >= rows)
        return;
    size_t at = (size_t)row * PACKS * WARP + lane;
    union pack v[PACKS];
    float sum = 0;
#pragma unroll
    for (int k = 0; k < PACKS; k++) {
        union pack a, b;
        a.bits = __ldcs(x + at + k * WARP);
        b.bits = __ldcs(residual + at + k * WARP);
#pragma unroll
        for (int j = 0; j < 4; j++) {
            float2 f = __bfloat1622float2(a.pair[j]), g = __bfloat1622float2(b.pair[j]);
            v[k].pair[j] = __floats2bfloat162_rn(f.x + g.x, f.y + g.y);
            f = __bfloat1622float2(v[k].pair[j]);
            sum = fmaf(f.x, f.x, fmaf(f.y, f.y, sum));
        }
        h[at + k * WARP] = v[k].bits;
    }
    for (int step = WARP / 2; step > 0; step /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    float scale = rsqrtf(sum / (float)(PACKS * WARP * 8) + EPS);
#pragma unroll
    for (int k = 0; k < PACKS; k++) {
        union pack g, r;
        g.bits = gain[lane + k * WARP]; /* every warp reads it: L1 and L2 hold it */
#pragma unroll
        for (int j = 0; j < 4; j++) {
            float2 f = __bfloat1622float2(v[k].pair[j]), w = __bfloat1622float2(g.pair[j]);
            r.pair[j] = __floats2bfloat162_rn(f.x * scale * w.x, f.y * scale * w.y);
        }
        y[at + k * WARP] = r.bits;
    }
}

template <int PACKS> static void launch(const struct ca_call *call, int rows)
{
    int warps = BLOCK / WARP;
    rms_norm<PACKS><<<(rows + warps - 1) / warps, BLOCK, 0, (cudaStream_t)call->stream>>>(
        (const uint4 *)call->in.v[0].data, (const uint4 *)call->in.v[1].data,
        (const uint4 *)call->param.v[0].data, (uint4 *)call->out.v[0].data,
        (uint4 *)call->out.v[1].data, rows);
}

int ca_forward(const struct ca_call *call)
{
    const struct ca_value *x = &call->in.v[0];
    int rows = (int)x->shape[0], dim = (int)x->shape[1];
    if (x->dtype != CA_BF16 || x->stride[1] != 1 || x->stride[0] != dim || dim % (8 * WARP) != 0)
        return 1;
    switch (dim / (8 * WARP)) { /* one instance a task is enough: shapes are fixed */
    case 2:
        launch<2>(call, rows);
        break;
    case 4:
        launch<4>(call, rows);
        break;
    case PACKS_MAX:
        launch<PACKS_MAX>(call, rows);
        break;
    default:
        return 1;
    }
    return cudaGetLastError() != cudaSuccess;
}
