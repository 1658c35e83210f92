// task column_sum.py
// rows 64 1
// fault  40 block_missing 0 11 0 0
// fault  41 block_of_the_next_column 0 11 0 63
// fault  42 rows_from 1 700 0 0
// sums 777
// honest 120 block_of_warps 1 16 0 0
// honest 121 two_streams 0 0 0 0
// honest 122 graph 0 0 0 0
#include "mutant.cuh"

struct args {
    const float *x;
    int64_t n, width;
};

static int64_t rows(const struct ca_call *c)
{
    return c->in.v[0].shape[1];
}

static args args_of(const struct ca_call *c)
{
    args p = { (const float *)c->in.v[0].data, c->in.v[0].shape[0], c->in.v[0].shape[1] };
    return p;
}

FRAME

__device__ void row(const args &p, const fault &f, int64_t r, char *const *to)
{
    __shared__ float column[800];
    for (int64_t i = threadIdx.x; i < p.n; i += blockDim.x) {
        int64_t from = f.is(41) && i / 65 == f.a && r == f.b ? (r + 1) % p.width : r;
        bool out = (f.is(40) && i / 65 == f.a) || (f.is(42) && i < f.a);
        column[i] = out ? 0 : p.x[i * p.width + from];
    }
    __syncthreads();
    float s = sum_of(f, column, p.n);
    if (threadIdx.x == 0)
        *(float *)to[0] = s;
    __syncthreads();
}
