/* y_t = g_t * y_(t-1) + x_t along the last axis, y_(-1) = 0: a scan in one pass.
 * in 0, 1: g, x, float32 [rows, steps], contiguous, steps a multiple of 4; out 0: like x.
 * Affine maps compose: first (a, b), then (c, d), is (a c, c b + d). A thread folds eight steps, a
 * warp scans the 32 folds by shuffles, and the block carries the last value into its next piece of
 * the row. Each byte moves once. A plain cumulative sum is g = 1: leave the first half of the pair
 * out. Few and very long rows need more than a block a row: split the row, scan the pieces' folds,
 * and apply (three kernels). SPDX-License-Identifier: Apache-2.0 */
#include <cuda_runtime.h>

#include "cuda_agent.h"

#define WARP 32
#define BLOCK 256
#define WARPS (BLOCK / WARP)
#define EACH 8 /* steps of a thread, two float4 */
#define PIECE (BLOCK * EACH)

/* y -> scale * y + add */
struct affine {
    float scale, add;
};

__device__ static struct affine then(struct affine first, struct affine second)
{
    struct affine r;
    r.scale = first.scale * second.scale;
    r.add = fmaf(second.scale, first.add, second.add);
    return r;
}

/* Eight steps from `at`; beyond the end they change nothing. */
__device__ static void load(const float *p, int at, int steps, float fill, float v[EACH])
{
#pragma unroll
    for (int k = 0; k < EACH; k += 4) {
        float4 f = at + k < steps ? __ldcs((const float4 *)(p + at + k))
                                  : make_float4(fill, fill, fill, fill);
        v[k] = f.x;
        v[k + 1] = f.y;
        v[k + 2] = f.z;
        v[k + 3] = f.w;
    }
}

/* What all lanes before this one do; `all` is what the whole warp does, in the last lane. */
__device__ static struct affine scan_warp(struct affine own, int lane, struct affine *all)
{
    for (int step = 1; step < WARP; step *= 2) {
        struct affine before;
        before.scale = __shfl_up_sync(0xffffffffu, own.scale, (unsigned)step);
        before.add = __shfl_up_sync(0xffffffffu, own.add, (unsigned)step);
        if (lane >= step)
            own = then(before, own);
    }
    *all = own;
    struct affine r;
    r.scale = __shfl_up_sync(0xffffffffu, own.scale, 1);
    r.add = __shfl_up_sync(0xffffffffu, own.add, 1);
    if (lane == 0)
        r.scale = 1, r.add = 0;
    return r;
}

__global__ void __launch_bounds__(BLOCK)
    gated_scan(const float *__restrict__ gate, const float *__restrict__ x, float *__restrict__ out,
               int steps)
{
    __shared__ struct affine room[WARPS];
    int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
    size_t row = (size_t)blockIdx.x * steps;
    float carry = 0; /* y before this piece, the same in every thread */
    for (int base = 0; base < steps; base += PIECE) {
        int at = base + (int)threadIdx.x * EACH;
        float g[EACH], v[EACH];
        load(gate + row, at, steps, 1, g);
        load(x + row, at, steps, 0, v);
        struct affine own = { 1, 0 }, all;
#pragma unroll
        for (int k = 0; k < EACH; k++)
            own = then(own, affine{ g[k], v[k] });
        struct affine before = scan_warp(own, lane, &all);
        if (lane == WARP - 1)
            room[warp] = all;
        __syncthreads();
        float y = carry;
        for (int w = 0; w < WARPS; w++) {
            if (w == warp)
                y = carry;
            carry = fmaf(room[w].scale, carry, room[w].add);
        }
        y = fmaf(before.scale, y, before.add);
#pragma unroll
        for (int k = 0; k < EACH; k++)
            v[k] = y = fmaf(g[k], y, v[k]);
#pragma unroll
        for (int k = 0; k < EACH; k += 4)
            if (at + k < steps)
                __stcs((float4 *)(out + row + at + k),
                       make_float4(v[k], v[k + 1], v[k + 2], v[k + 3]));
        __syncthreads(); /* room is written again */
    }
}

int ca_forward(const struct ca_call *call)
{
    const struct ca_value *x = &call->in.v[1];
    int rows = (int)x->shape[0], steps = (int)x->shape[1];
    if (x->dtype != CA_F32 || x->stride[1] != 1 || x->stride[0] != steps || steps % 4 != 0)
        return 1;
    gated_scan<<<rows, BLOCK, 0, (cudaStream_t)call->stream>>>((const float *)call->in.v[0].data,
                                                               (const float *)x->data,
                                                               (float *)call->out.v[0].data, steps);
    return cudaGetLastError() != cudaSuccess;
}
