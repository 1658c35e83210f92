/* out[b][c][r] = x[b][r][c] * scale[c]: a transposed copy through shared memory.
 * in 0: x, float32 [batch, rows, cols], contiguous; param 0: scale [cols]; out 0: [batch, cols,
 * rows]. Reads and writes are both along the fast axis; the tile's rows are 33 floats, so that a
 * column of it lies on 32 different banks. Better still is no copy: let the consumer read by the
 * other index. SPDX-License-Identifier: Apache-2.0 */
#include <cuda_runtime.h>

#include "cuda_agent.h"

#define TILE 32
#define DEEP 8 /* rows that a block moves at a time */

__global__ void __launch_bounds__(TILE *DEEP)
    transpose_scale(const float *__restrict__ x, const float *__restrict__ scale,
                    float *__restrict__ out, int rows, int cols)
{
    __shared__ float tile[TILE][TILE + 1];
    int across = (int)threadIdx.x, down = (int)threadIdx.y;
    int c = (int)blockIdx.x * TILE + across, r = (int)blockIdx.y * TILE + down;
    const float *p = x + (size_t)blockIdx.z * rows * cols;
    float *q = out + (size_t)blockIdx.z * rows * cols;
    float s = c < cols ? scale[c] : 0;
#pragma unroll
    for (int k = 0; k < TILE; k += DEEP)
        if (r + k < rows && c < cols)
            tile[down + k][across] = p[(size_t)(r + k) * cols + c] * s;
    __syncthreads();
    c = (int)blockIdx.x * TILE + down;
    r = (int)blockIdx.y * TILE + across;
#pragma unroll
    for (int k = 0; k < TILE; k += DEEP)
        if (c + k < cols && r < rows)
            q[(size_t)(c + k) * rows + r] = tile[across][down + k];
}

int ca_forward(const struct ca_call *call)
{
    const struct ca_value *x = &call->in.v[0];
    int batch = (int)x->shape[0], rows = (int)x->shape[1], cols = (int)x->shape[2];
    if (x->dtype != CA_F32 || x->stride[2] != 1 || x->stride[1] != cols ||
        x->stride[0] != (int64_t)rows * cols)
        return 1;
    dim3 grid((unsigned)((cols + TILE - 1) / TILE), (unsigned)((rows + TILE - 1) / TILE),
              (unsigned)batch); /* y and z hold at most 65,535 */
    dim3 block(TILE, DEEP);
    transpose_scale<<<grid, block, 0, (cudaStream_t)call->stream>>>(
        (const float *)x->data, (const float *)call->param.v[0].data, (float *)call->out.v[0].data,
        rows, cols);
    return cudaGetLastError() != cudaSuccess;
}
