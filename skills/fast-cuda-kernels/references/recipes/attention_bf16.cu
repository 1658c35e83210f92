/* softmax(q k^T * SCALE) v for heads of 64, scores never in memory; tensor cores by mma.sync, sums
 * in float32. in 0, 1, 2: q, k, v, bf16 [batch, heads, length, 64], contiguous, length a multiple
 * of 64; out 0: like q. A block has 64 queries of one head, 16 to a warp, and goes over keys and
 * values 64 at a time through shared memory. A lane holds rows lane/4 and lane/4 + 8 of the
 * fragments: maximum and sum of a row are shared by four lanes. The fragment of scores is, packed
 * to bf16, the left operand of the second product: no exchange. Next steps: cp.async double
 * buffering, causal mask (end the loop at the diagonal), wgmma with 128 queries.
 * SPDX-License-Identifier: Apache-2.0 */
#include <cfloat>
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "cuda_agent.h"

#define HEAD 64
#define ROWS 64 /* queries of a block, and keys of a piece */
#define WARP 32
#define BLOCK 128
#define PITCH (HEAD + 8) /* bf16 of a row in shared memory: rows shift by four banks */
#define SCALE_LOG2 (0.125f * 1.44269504f) /* 1/sqrt(64), for exp2 */

/* d += a b: a is 16x16, b 16x8, d 16x8. */
__device__ static void mma(float d[4], const uint32_t a[4], uint32_t b0, uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* Four 8x8 blocks, transposed: the lanes' addresses are those of their 32 rows. */
__device__ static void load_transposed(uint32_t r[4], const __nv_bfloat16 *row)
{
    uint32_t at = (uint32_t)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
}

__device__ static uint32_t pack(float low, float high)
{
    __nv_bfloat162 v = __floats2bfloat162_rn(low, high);
    return *(uint32_t *)&v;
}

/* ROWS rows of 64 from memory to shared memory. */
__device__ static void fetch(__nv_bfloat16 (*to)[PITCH], const __nv_bfloat16 *from)
{
#pragma unroll
    for (int i = (int)threadIdx.x; i < ROWS * HEAD / 8; i += BLOCK)
        *(uint4 *)&to[i / 8][i % 8 * 8] = ((const uint4 *)from)[i];
}

/* What four lanes have of one row. */
__device__ static float row_max(float v)
{
    v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, 1));
    return fmaxf(v, __shfl_xor_sync(0xffffffffu, v, 2));
}

__device__ static float row_sum(float v)
{
    v += __shfl_xor_sync(0xffffffffu, v, 1);
    return v + __shfl_xor_sync(0xffffffffu, v, 2);
}

/* New maxima; sums and outputs of both rows rescaled; s becomes exp(s - max). sum is of this lane's
 * columns. */
__device__ static void rescale(float s[8][4], float out[8][4], float max[2], float sum[2])
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float top = max[half];
#pragma unroll
        for (int n = 0; n < 8; n++)
            top = fmaxf(top, fmaxf(s[n][2 * half], s[n][2 * half + 1]));
        top = row_max(top);
        float shrink = exp2f((max[half] - top) * SCALE_LOG2);
        max[half] = top;
        sum[half] *= shrink;
#pragma unroll
        for (int n = 0; n < 8; n++)
#pragma unroll
            for (int j = 2 * half; j < 2 * half + 2; j++) {
                s[n][j] = exp2f((s[n][j] - top) * SCALE_LOG2);
                sum[half] += s[n][j];
                out[n][j] *= shrink;
            }
    }
}

__global__ void __launch_bounds__(BLOCK)
    attention(const __nv_bfloat16 *__restrict__ q, const __nv_bfloat16 *__restrict__ k,
              const __nv_bfloat16 *__restrict__ v, __nv_bfloat16 *__restrict__ out, int length)
{
    __shared__ __align__(16) __nv_bfloat16 keys[ROWS][PITCH], values[ROWS][PITCH];
    int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
    int group = lane / 4, pair = lane % 4 * 2; /* row and first column in a fragment */
    size_t head = (size_t)blockIdx.x * length * HEAD;
    size_t row = head + ((size_t)blockIdx.y * ROWS + warp * 16 + group) * HEAD;
    uint32_t query[HEAD / 16][4];
    float acc[8][4] = {}, max[2] = { -FLT_MAX, -FLT_MAX }, sum[2] = { 0, 0 };
#pragma unroll
    for (int c = 0; c < HEAD / 16; c++)
#pragma unroll
        for (int j = 0; j < 4; j++) /* right half for j of 2 and 3, lower half for odd j */
            query[c][j] =
                *(const uint32_t *)(q + row + (j % 2) * 8 * HEAD + c * 16 + j / 2 * 8 + pair);
    for (int base = 0; base < length; base += ROWS) {
        __syncthreads(); /* the piece before is used up */
        fetch(keys, k + head + (size_t)base * HEAD);
        fetch(values, v + head + (size_t)base * HEAD);
        __syncthreads();
        float s[8][4] = {};
#pragma unroll
        for (int n = 0; n < 8; n++)
#pragma unroll
            for (int c = 0; c < HEAD / 16; c++)
                mma(s[n], query[c], *(const uint32_t *)&keys[n * 8 + group][c * 16 + pair],
                    *(const uint32_t *)&keys[n * 8 + group][c * 16 + 8 + pair]);
        rescale(s, acc, max, sum);
#pragma unroll
        for (int c = 0; c < ROWS / 16; c++) {
            uint32_t p[4] = { pack(s[2 * c][0], s[2 * c][1]), pack(s[2 * c][2], s[2 * c][3]),
                              pack(s[2 * c + 1][0], s[2 * c + 1][1]),
                              pack(s[2 * c + 1][2], s[2 * c + 1][3]) };
#pragma unroll
            for (int n = 0; n < 8; n += 2) {
                uint32_t b[4];
                load_transposed(b, &values[c * 16 + lane % 16][n * 8 + lane / 16 * 8]);
                mma(acc[n], p, b[0], b[1]);
                mma(acc[n + 1], p, b[2], b[3]);
            }
        }
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float scale = 1.0f / row_sum(sum[half]);
#pragma unroll
        for (int n = 0; n < 8; n++)
            *(uint32_t *)(out + row + half * 8 * HEAD + n * 8 + pair) =
                pack(acc[n][2 * half] * scale, acc[n][2 * half + 1] * scale);
    }
}

int ca_forward(const struct ca_call *call)
{
    const struct ca_value *q = &call->in.v[0];
    int heads = (int)(q->shape[0] * q->shape[1]), length = (int)q->shape[2];
    if (q->dtype != CA_BF16 || q->shape[3] != HEAD || q->stride[3] != 1 || q->stride[2] != HEAD ||
        length % ROWS != 0)
        return 1;
    dim3 grid((unsigned)heads, (unsigned)(length / ROWS));
    attention<<<grid, BLOCK, 0, (cudaStream_t)call->stream>>>(
        (const __nv_bfloat16 *)q->data, (const __nv_bfloat16 *)call->in.v[1].data,
        (const __nv_bfloat16 *)call->in.v[2].data, (__nv_bfloat16 *)call->out.v[0].data, length);
    return cudaGetLastError() != cudaSuccess;
}
