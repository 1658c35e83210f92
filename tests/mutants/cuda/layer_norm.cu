// task layer_norm.py
// rows 96 387
// fault  40 weight_skipped 0 0 0 0
// fault  41 bias_skipped 0 0 0 0
// fault  42 mean_skipped 0 0 0 0
// fault  43 affine_skipped_from_column 0 386 0 0
// fault  44 first_column_wrong 1 386 0 0
// fault  45 weight_of_the_next_column 0 385 0 0
// fault  46 divides_by_one_less 1 30 0 0
// fault  47 statistics_of_row 0 95 0 95
// fault  48 weights_of_the_first_setup 0 0 0 0
// fault  49 tail_of_the_row_skipped 4 64 0 0
// sums 387
// honest 120 block_of_warps 1 16 0 0
// honest 121 two_streams 0 0 0 0
// honest 122 graph 0 0 0 0
// honest 140 weights_packed 0 0 0 0
#include "mutant.cuh"

struct args {
    const float *x, *w, *b;
    int64_t n;
};

static int64_t rows(const struct ca_call *c)
{
    return c->in.v[0].shape[0];
}

extern "C" size_t ca_keep(const struct ca_call *c)
{
    return 2 * 4 * (size_t)c->in.v[0].shape[1];
}

extern "C" int ca_setup(const struct ca_call *c, void **state)
{
    static int times;
    size_t bytes = 4 * (size_t)c->in.v[0].shape[1];
    (void)state;
    if (times++ > 0 && ca_mutant.kind == 48)
        return 0;
    cudaStream_t s = (cudaStream_t)c->stream;
    cudaMemcpyAsync(c->keep, c->param.v[0].data, bytes, cudaMemcpyDeviceToDevice, s);
    cudaMemcpyAsync((char *)c->keep + bytes, c->param.v[1].data, bytes, cudaMemcpyDeviceToDevice,
                    s);
    return cudaStreamSynchronize(s) == cudaSuccess ? 0 : 1;
}

static args args_of(const struct ca_call *c)
{
    const volatile struct mutant *m = &ca_mutant;
    args p = { (const float *)c->in.v[0].data, (const float *)c->param.v[0].data,
               (const float *)c->param.v[1].data, c->in.v[0].shape[1] };
    if (m->kind == 48 || m->kind == 140) {
        p.w = (const float *)c->keep;
        p.b = p.w + p.n;
    }
    return p;
}

FRAME

__device__ void row(const args &p, const fault &f, int64_t r, char *const *to)
{
    __shared__ float d[512];
    int64_t n = p.n;
    const float *x = p.x + r * n, *s = f.is(47) && r == f.a ? p.x + f.b * n : x;
    float *y = (float *)to[0];
    float mean = f.is(42) ? 0 : sum_of(f, s, n) / (float)n;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
        d[i] = (s[i] - mean) * (s[i] - mean);
    __syncthreads();
    float var = sum_of(f, d, n) / (float)(f.is(46) ? n - f.a : n);
    float scale = rsqrtf(var + 1e-5f);
    int64_t end = f.is(49) ? n - n % f.a : n;
    for (int64_t i = threadIdx.x; i < end; i += blockDim.x) {
        int64_t k = f.is(45) && i == f.a ? i + 1 : i;
        float w = f.is(40) || (f.is(43) && i >= f.a) ? 1 : p.w[k];
        float b = f.is(41) || (f.is(43) && i >= f.a) ? 0 : p.b[k];
        y[i] = (x[f.is(44) && i == 0 ? f.a : i] - mean) * scale * w + b;
    }
}
