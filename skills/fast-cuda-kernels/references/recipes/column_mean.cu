/* out[c] = mean_r x[r][c]: the reduced axis is the slow one.
 * in 0: x, float32 [rows, cols], contiguous, cols a multiple of 4; out 0: float32 [cols].
 * A block reads strips of 128 columns, so that a warp's 32 float4 are 512 neighbouring bytes; rows
 * are split over the grid, partial sums go to scratch, and a second small kernel adds them in a
 * fixed order. No atomics: the same bits on each run. SPDX-License-Identifier: Apache-2.0 */
#include <cuda_runtime.h>

#include "cuda_agent.h"

#define LANES 32 /* float4 across */
#define DEEP 8   /* rows of a block at a time */

__device__ static float4 plus(float4 a, float4 b)
{
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

__global__ void partial_sums(const float4 *__restrict__ x, float4 *__restrict__ part, int rows,
                             int packs)
{
    __shared__ float4 room[DEEP][LANES];
    int pack = (int)(blockIdx.x * LANES + threadIdx.x);
    float4 sum = make_float4(0, 0, 0, 0);
    if (pack < packs)
#pragma unroll 4
        for (int r = (int)(blockIdx.y * DEEP + threadIdx.y); r < rows; r += (int)gridDim.y * DEEP)
            sum = plus(sum, __ldcs(x + (size_t)r * packs + pack));
    room[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y != 0 || pack >= packs)
        return;
    for (int d = 1; d < DEEP; d++)
        sum = plus(sum, room[d][threadIdx.x]);
    part[(size_t)blockIdx.y * packs + pack] = sum;
}

__global__ void finish(const float *part, float *out, int parts, int cols, float scale)
{
    int c = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (c >= cols)
        return;
    float sum = 0;
    for (int p = 0; p < parts; p++)
        sum += part[(size_t)p * cols + c];
    out[c] = sum * scale;
}

/* As many parts as fill the device about four times, with at least one row for each thread. */
static int parts_of(const struct ca_call *call)
{
    int rows = (int)call->in.v[0].shape[0], cols = (int)call->in.v[0].shape[1];
    int strips = (cols / 4 + LANES - 1) / LANES;
    int parts = 4 * (call->sm_count > 0 ? call->sm_count : 132) * 2 / strips;
    int most = (rows + DEEP - 1) / DEEP;
    parts = parts < most ? parts : most;
    return parts < 1 ? 1 : parts;
}

size_t ca_scratch(const struct ca_call *call)
{
    return (size_t)parts_of(call) * (size_t)call->in.v[0].shape[1] * sizeof(float);
}

int ca_forward(const struct ca_call *call)
{
    const struct ca_value *x = &call->in.v[0];
    int rows = (int)x->shape[0], cols = (int)x->shape[1], parts = parts_of(call);
    cudaStream_t stream = (cudaStream_t)call->stream;
    if (x->dtype != CA_F32 || x->stride[1] != 1 || x->stride[0] != cols || cols % 4 != 0)
        return 1;
    dim3 grid((unsigned)((cols / 4 + LANES - 1) / LANES), (unsigned)parts), block(LANES, DEEP);
    partial_sums<<<grid, block, 0, stream>>>((const float4 *)x->data, (float4 *)call->scratch, rows,
                                             cols / 4);
    finish<<<(cols + 127) / 128, 128, 0, stream>>>((const float *)call->scratch,
                                                   (float *)call->out.v[0].data, parts, cols,
                                                   1.0f / (float)rows);
    return cudaGetLastError() != cudaSuccess;
}
