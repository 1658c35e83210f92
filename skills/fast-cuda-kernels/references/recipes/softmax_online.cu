/* softmax over long rows: maximum and sum in one pass, then one pass that writes.
 * in 0: x, float32 [rows, dim], contiguous, dim a multiple of 4; out 0: like x.
 * A thread keeps (max, sum of exp(x - max)) and rescales the sum when the maximum grows. The second
 * read finds the row in L2 (two blocks an SM with rows of 100 KB are 26 MB). Rows of up to 8,192:
 * keep them in registers instead, as layer_norm.cu does, and read once. SPDX-License-Identifier:
 * Apache-2.0 */
#include <cfloat>
#include <cuda_runtime.h>

#include "cuda_agent.h"

#define WARP 32
#define BLOCK 1024
#define WARPS (BLOCK / WARP)
#define LOG2E 1.44269504f

/* sum is over exp(x - max). The empty one has the lowest finite max: minus infinity would make inf
 * - inf. */
struct online {
    float max, sum;
};

__device__ static struct online merge(struct online a, struct online b)
{
    struct online r;
    r.max = fmaxf(a.max, b.max);
    r.sum = a.sum * exp2f((a.max - r.max) * LOG2E) + b.sum * exp2f((b.max - r.max) * LOG2E);
    return r;
}

__device__ static float exps(float4 v, float max)
{
    return (exp2f((v.x - max) * LOG2E) + exp2f((v.y - max) * LOG2E)) +
           (exp2f((v.z - max) * LOG2E) + exp2f((v.w - max) * LOG2E));
}

__device__ static struct online merge_warp(struct online s)
{
    for (int step = WARP / 2; step > 0; step /= 2) {
        struct online other;
        other.max = __shfl_xor_sync(0xffffffffu, s.max, step);
        other.sum = __shfl_xor_sync(0xffffffffu, s.sum, step);
        s = merge(s, other);
    }
    return s;
}

__global__ void __launch_bounds__(BLOCK, 2)
    softmax_online(const float4 *__restrict__ x, float4 *__restrict__ out, int packs)
{
    __shared__ struct online room[WARPS];
    const float4 *p = x + (size_t)blockIdx.x * packs;
    float4 *q = out + (size_t)blockIdx.x * packs;
    struct online s = { -FLT_MAX, 0 };
    for (int i = (int)threadIdx.x; i < packs; i += BLOCK) {
        float4 v = p[i];
        float max = fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w));
        if (max > s.max) {
            s.sum *= exp2f((s.max - max) * LOG2E);
            s.max = max;
        }
        s.sum += exps(v, s.max);
    }
    s = merge_warp(s);
    if (threadIdx.x % WARP == 0)
        room[threadIdx.x / WARP] = s;
    __syncthreads();
    s = merge_warp(room[threadIdx.x % WARP]); /* WARPS is WARP: each warp merges all of them */
    float scale = 1.0f / s.sum;
    for (int i = (int)threadIdx.x; i < packs; i += BLOCK) {
        float4 v = p[i];
        __stcs(q + i, make_float4(exp2f((v.x - s.max) * LOG2E) * scale,
                                  exp2f((v.y - s.max) * LOG2E) * scale,
                                  exp2f((v.z - s.max) * LOG2E) * scale,
                                  exp2f((v.w - s.max) * LOG2E) * scale));
    }
}

int ca_forward(const struct ca_call *call)
{
    const struct ca_value *x = &call->in.v[0];
    int rows = (int)x->shape[0], dim = (int)x->shape[1];
    if (x->dtype != CA_F32 || x->stride[1] != 1 || x->stride[0] != dim || dim % 4 != 0)
        return 1;
    softmax_online<<<rows, BLOCK, 0, (cudaStream_t)call->stream>>>(
        (const float4 *)x->data, (float4 *)call->out.v[0].data, dim / 4);
    return cudaGetLastError() != cudaSuccess;
}
