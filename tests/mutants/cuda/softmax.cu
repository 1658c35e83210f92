// task softmax.py
// rows 72 501
// fault  40 maximum_skipped 0 0 0 0
// fault  41 maximum_of_a_part 1 400 0 0
// fault  42 normaliser_of_another_row 0 71 0 71
// fault  43 not_normalised_from_column 1 500 0 0
// fault  45 last_columns_not_in_the_sum 1 250 0 0
// fault  46 column_of_the_next 0 499 0 0
// fault  47 maximum_of_the_first_warp 0 0 0 0
// sums 501
// honest 120 block_of_warps 1 16 0 0
// honest 121 two_streams 0 0 0 0
// honest 122 graph 0 0 0 0
// honest 140 fast_exp 0 0 0 0
// honest 141 exp2 0 0 0 0
#include "mutant.cuh"

struct args {
    const float *x;
    int64_t n;
};

static int64_t rows(const struct ca_call *c)
{
    return c->in.v[0].shape[0];
}

static args args_of(const struct ca_call *c)
{
    args p = { (const float *)c->in.v[0].data, c->in.v[0].shape[1] };
    return p;
}

FRAME

__device__ float maximum(const fault &f, const float *x, int64_t n)
{
    __shared__ float part[WARPS_MAX * 32];
    float m = -INFINITY;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
        m = fmaxf(m, x[i]);
    __syncthreads();
    part[threadIdx.x] = m;
    __syncthreads();
    for (int i = 0; i < (f.is(47) ? 32 : blockDim.x); i++)
        m = f.is(47) && i == 0 ? part[0] : fmaxf(m, part[i]);
    return m;
}

__device__ float power(const fault &f, float x)
{
    return f.is(140) ? __expf(x) : f.is(141) ? exp2f(x * 1.44269504f) : expf(x);
}

__device__ void row(const args &p, const fault &f, int64_t r, char *const *to)
{
    __shared__ float e[512];
    int64_t n = p.n;
    const float *x = p.x + r * n, *other = f.is(42) && r == f.a ? p.x + f.b * n : x;
    float *y = (float *)to[0];
    float m = f.is(40) ? 0 : maximum(f, x, f.is(41) ? f.a : n);
    float mo = other == x ? m : maximum(f, other, n);
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
        e[i] = power(f, other[i] - mo);
    __syncthreads();
    float s = sum_of(f, e, f.is(45) ? n - f.a : n);
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
        y[i] = power(f, x[f.is(46) && i == f.a ? i + 1 : i] - m) / (f.is(43) && i >= f.a ? 1 : s);
    __syncthreads();
}
