/* y = a * sigmoid(b) + c, element by element, in bfloat16: eight elements to an access.
 * in 0, 1, 2: a, b, c, bf16, the same shape, contiguous; out 0: like them. Any number of elements.
 * Each thread issues six 16-byte loads before it computes. Arithmetic in float32, rounded once.
 * float32 is the same with float4. SPDX-License-Identifier: Apache-2.0 */
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "cuda_agent.h"

#define BLOCK 256
#define EACH 2 /* packs of a thread */

union pack {
    uint4 bits;
    __nv_bfloat162 pair[4];
};

__device__ static float gate(float a, float b, float c)
{
    return fmaf(a, 1.0f / (1.0f + __expf(-b)), c);
}

__global__ void __launch_bounds__(BLOCK)
    gate_packs(const uint4 *__restrict__ a, const uint4 *__restrict__ b,
               const uint4 *__restrict__ c, uint4 *__restrict__ out, size_t packs)
{
    size_t at = (size_t)blockIdx.x * BLOCK * EACH + threadIdx.x;
    union pack u[EACH], v[EACH], w[EACH];
#pragma unroll
    for (int k = 0; k < EACH; k++)
        if (at + k * BLOCK < packs) {
            u[k].bits = __ldcs(a + at + k * BLOCK);
            v[k].bits = __ldcs(b + at + k * BLOCK);
            w[k].bits = __ldcs(c + at + k * BLOCK);
        }
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        if (at + k * BLOCK >= packs)
            break;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            float2 x = __bfloat1622float2(u[k].pair[j]), y = __bfloat1622float2(v[k].pair[j]);
            float2 z = __bfloat1622float2(w[k].pair[j]);
            u[k].pair[j] = __floats2bfloat162_rn(gate(x.x, y.x, z.x), gate(x.y, y.y, z.y));
        }
        __stcs(out + at + k * BLOCK, u[k].bits);
    }
}

/* The last n % 8 elements. */
__global__ void gate_rest(const __nv_bfloat16 *a, const __nv_bfloat16 *b, const __nv_bfloat16 *c,
                          __nv_bfloat16 *out, size_t from, size_t n)
{
    size_t i = from + threadIdx.x;
    if (i < n)
        out[i] = __float2bfloat16(
            gate(__bfloat162float(a[i]), __bfloat162float(b[i]), __bfloat162float(c[i])));
}

int ca_forward(const struct ca_call *call)
{
    const struct ca_value *in = call->in.v;
    cudaStream_t stream = (cudaStream_t)call->stream;
    size_t n = 1;
    for (int d = 0; d < in[0].rank; d++)
        n *= (size_t)in[0].shape[d];
    size_t packs = n / 8, step = (size_t)BLOCK * EACH;
    if (in[0].dtype != CA_BF16)
        return 1;
    if (packs > 0)
        gate_packs<<<(unsigned)((packs + step - 1) / step), BLOCK, 0, stream>>>(
            (const uint4 *)in[0].data, (const uint4 *)in[1].data, (const uint4 *)in[2].data,
            (uint4 *)call->out.v[0].data, packs);
    if (n % 8 != 0)
        gate_rest<<<1, 8, 0, stream>>>(
            (const __nv_bfloat16 *)in[0].data, (const __nv_bfloat16 *)in[1].data,
            (const __nv_bfloat16 *)in[2].data, (__nv_bfloat16 *)call->out.v[0].data, packs * 8, n);
    return cudaGetLastError() != cudaSuccess;
}
