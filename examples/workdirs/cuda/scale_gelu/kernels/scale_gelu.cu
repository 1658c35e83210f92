/* gelu(x w + b), four elements to a thread. x, y: [rows, dim]; w, b: [dim]; dim a multiple of 4. */
#include <cuda_runtime.h>

__device__ static float gelu(float v)
{
    return 0.5f * v * (1.0f + tanhf(0.7978845608f * (v + 0.044715f * v * v * v)));
}

__global__ void scale_gelu_kernel(float4 *y, const float4 *x, const float4 *w, const float4 *b,
                                  long n, int dim4)
{
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float4 v = x[i], s = w[i % dim4], t = b[i % dim4];
    y[i] = make_float4(gelu(v.x * s.x + t.x), gelu(v.y * s.y + t.y), gelu(v.z * s.z + t.z),
                       gelu(v.w * s.w + t.w));
}

extern "C" void scale_gelu_launcher(float *y, const float *x, const float *w, const float *b,
                                    long rows, int dim, cudaStream_t stream)
{
    long n = rows * dim / 4;
    scale_gelu_kernel<<<(unsigned)((n + 255) / 256), 256, 0, stream>>>(
        (float4 *)y, (const float4 *)x, (const float4 *)w, (const float4 *)b, n, dim / 4);
}
