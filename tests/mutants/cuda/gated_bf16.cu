// task gated_bf16.py
// rows 64 333
// fault  40 weight_skipped 0 0 0 0
// fault  41 residual_skipped 0 0 0 0
// fault  42 tail_skipped 4 32 0 0
// fault  43 residual_of_the_next 0 331 0 0
// fault  44 sigmoid_by_a_line 0 0 0 0
// fault  45 weight_skipped_from_column 0 332 0 0
// fault  46 low_precision 2 5 0 0
// fault  47 residual_skipped_in_row 0 63 0 0
// honest 120 block_of_warps 1 16 0 0
// honest 121 two_streams 0 0 0 0
// honest 122 graph 0 0 0 0
// honest 140 as_eager_rounds 0 0 0 0
// honest 141 fast_exp 0 0 0 0
// honest 142 tanh 0 0 0 0
#include "mutant.cuh"

#include <cuda_bf16.h>

typedef __nv_bfloat16 bf16;

struct args {
    const bf16 *x, *z, *w;
    int64_t n;
};

static int64_t rows(const struct ca_call *c)
{
    return c->in.v[0].shape[0];
}

static args args_of(const struct ca_call *c)
{
    args p = { (const bf16 *)c->in.v[0].data, (const bf16 *)c->in.v[1].data,
               (const bf16 *)c->param.v[0].data, c->in.v[0].shape[1] };
    return p;
}

FRAME

__device__ float rounded(const fault &f, float x)
{
    return f.is(140)  ? __bfloat162float(__float2bfloat16(x))
           : f.is(46) ? keep_bits(x, (int)f.a)
                      : x;
}

__device__ float sigmoid(const fault &f, float x)
{
    if (f.is(44))
        return fminf(fmaxf(0.5f + 0.2f * x, 0), 1);
    if (f.is(142))
        return 0.5f + 0.5f * tanhf(x / 2);
    return 1 / (1 + (f.is(141) ? __expf(-x) : expf(-x)));
}

__device__ void row(const args &p, const fault &f, int64_t r, char *const *to)
{
    int64_t n = p.n, end = f.is(42) ? n - n % f.a : n;
    bf16 *y = (bf16 *)to[0];
    for (int64_t i = threadIdx.x; i < end; i += blockDim.x) {
        float w = f.is(40) || (f.is(45) && i >= f.a) ? 1 : __bfloat162float(p.w[i]);
        float t = rounded(f, __bfloat162float(p.x[r * n + i]) * w);
        float s = rounded(f, t * rounded(f, sigmoid(f, t)));
        float z = __bfloat162float(p.z[r * n + (f.is(43) && i == f.a ? i + 1 : i)]);
        y[i] = __float2bfloat16(s + (f.is(41) || (f.is(47) && r == f.a) ? 0 : z));
    }
}
