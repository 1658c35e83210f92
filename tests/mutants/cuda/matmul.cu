// task matmul.py
// rows 64 80
// fault  40 bias_skipped 0 0 0 0
// fault  41 relu_skipped 0 0 0 0
// fault  42 bias_skipped_from_column 0 79 0 0
// fault  43 columns_dropped_from 1 79 0 0
// fault  44 column_of_the_next 0 78 0 0
// fault  45 relu_skipped_in_row 0 63 0 0
// fault  47 tile_of_another_depth 0 79 0 120
// fault  48 one_column_in 2 64 0 63
// fault  49 tile_without_barrier 0 0 0 0
// fault  50 tile_not_filled 0 15 0 0
// dots 129
// honest 120 block_of_warps 1 16 0 0
// honest 121 two_streams 0 0 0 0
// honest 122 graph 0 0 0 0
// honest 140 tiled 0 0 0 0
// honest 141 fma_in_double 0 0 0 0
#include "mutant.cuh"

struct args {
    const float *x, *w, *b;
    int64_t n, k;
};

static int64_t rows(const struct ca_call *c)
{
    return c->in.v[0].shape[0];
}

static args args_of(const struct ca_call *c)
{
    args p = { (const float *)c->in.v[0].data, (const float *)c->param.v[0].data,
               (const float *)c->param.v[1].data, c->param.v[0].shape[0], c->param.v[0].shape[1] };
    return p;
}

FRAME

/* The row of x goes through shared memory, 16 terms at a time. */
__device__ float tiled(const args &p, const fault &f, const float *x, int64_t j)
{
    __shared__ float tile[16];
    float s = 0;
    for (int64_t first = 0; first < p.k; first += 16) {
        int64_t len = p.k - first < 16 ? p.k - first : 16;
        __syncthreads();
        if (threadIdx.x < len && !(f.is(50) && threadIdx.x == f.a))
            tile[threadIdx.x] = x[first + threadIdx.x];
        if (!f.is(49))
            __syncthreads();
        for (int64_t i = 0; i < len && j < p.n; i++)
            s += tile[i] * p.w[j * p.k + first + i];
    }
    return s;
}

__device__ float element(const args &p, const fault &f, const float *x, int64_t j)
{
    const float *w = p.w + j * p.k;
    double d = 0;
    if (f.is(141)) {
        for (int64_t i = 0; i < p.k; i++)
            d += (double)x[i] * w[i];
        return (float)d;
    }
    float s = dot(f, x, w, 1, p.k);
    if (f.is(47) && j == f.a)
        for (int64_t i = f.b; i < f.b + 8 && i + 8 < p.k; i++)
            s += x[i] * (w[i + 8] - w[i]);
    return s;
}

__device__ void row(const args &p, const fault &f, int64_t r, char *const *to)
{
    const float *x = p.x + r * p.k;
    float *y = (float *)to[0];
    bool tiles = f.is(140) || f.is(49) || f.is(50);
    for (int64_t first = 0; first < p.n; first += blockDim.x) {
        int64_t j = first + threadIdx.x, from = f.is(44) && j == f.a ? j + 1 : j;
        float s = tiles ? tiled(p, f, x, j) : j < p.n ? element(p, f, x, from) : 0;
        if (j >= p.n || (f.is(43) && j >= f.a) || (f.is(48) && j % f.a == f.b % f.a))
            continue;
        s += f.is(40) || (f.is(42) && j >= f.a) ? 0 : p.b[j];
        y[j] = f.is(41) || (f.is(45) && r == f.a) ? s : fmaxf(s, 0);
    }
}
