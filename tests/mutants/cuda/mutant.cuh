/* mutant.cuh -- tests/mutants/cpu/mutant.h for devices: a block computes a row of every output.
 *
 * A kernel fills struct args from the call, and writes row() and rows(). The kinds are those of
 * mutant.h; a sum is taken by the threads of a block, each term by one of them.
 */
#ifndef MUTANT_CUH
#define MUTANT_CUH

#include "cuda_agent.h"

#include <cuda_runtime.h>
#include <stdlib.h>
#include <string.h>

struct mutant {
    char magic[16];
    int64_t kind, a, b;
};

extern "C" {
struct mutant ca_mutant = { "ca-mutant-here!", 0, 0, 0 };
}

struct fault {
    int64_t kind, a, b;
    __host__ __device__ bool is(int k) const { return kind == k; }
};

enum {
    LAST_ROWS_DROPPED = 1,
    ROW_SKIPPED,
    ONE_ROW_IN,
    STALE_ROW,
    STALE_CALL,
    ROWS_EXCHANGED,
    INDEX_WRAPS,
    NEIGHBOUR,
    ROW_FROM_ROW,
    HALF_SUM = 20,
    TERM_MISSING,
    TERM_TWICE,
    TAIL_MISSING,
    LOW_PRECISION,
    LOST_UPDATE,
    UNINITIALISED,  /* shared memory is added to, not set */
    NO_SECOND_PASS, /* only the first warp's partial sum counts */
    ROUNDED_INPUT,
    SHARED_SCRATCH, /* no barrier before the partial sums are read */
    BACKWARD = 100,
    BY_CHUNKS,
    BY_STRIDE,
    PARTIAL_SUMS,
    SUM_BACKWARD,
    SUM_DOUBLE,
    SUM_PAIRWISE, /* by shuffles */
    TENSOR_CORE,
    KAHAN,
    SEQUENTIAL,     /* by one thread */
    BLOCK_OF = 120, /* a warps */
    TWO_STREAMS,
    GRAPH,
};

#define WARPS 4
#define WARPS_MAX 16

__device__ inline float keep_bits(float x, int bits)
{
    unsigned u = __float_as_uint(x), half = 1u << (22 - bits);
    return __uint_as_float((u + half) & ~((half << 1) - 1));
}

struct terms {
    const float *x, *y;
    int64_t sx, sy, n;
};

__device__ inline float term(const fault &f, const terms &t, int64_t i)
{
    float x = t.x[i * t.sx], y = t.y ? t.y[i * t.sy] : 1;
    if (f.is(ROUNDED_INPUT) || f.is(TENSOR_CORE))
        return keep_bits(x, (int)f.a) * (t.y ? keep_bits(y, (int)f.a) : 1);
    return x * y;
}

/* Terms first, first + step... by one thread, in the way that the mutant wants. */
__device__ inline double part_of(const fault &f, const terms &t, int64_t first, int64_t step)
{
    float s = 0, lost = 0;
    double d = 0;
    int64_t n = f.is(HALF_SUM) ? t.n * f.a / 100 : f.is(TAIL_MISSING) ? t.n - t.n % f.a : t.n;
    int64_t count = n > first ? (n - first + step - 1) / step : 0;
    for (int64_t k = 0; k < count; k++) {
        int64_t i = first + (f.is(SUM_BACKWARD) ? count - 1 - k : k) * step;
        float x = term(f, t, i);
        if ((f.is(TERM_MISSING) && i == f.a) || (f.is(LOST_UPDATE) && (clock64() >> 3) % f.a == 0))
            continue;
        x = f.is(TERM_TWICE) && i == f.a ? 2 * x : x;
        float y = x - (f.is(KAHAN) ? lost : 0), z = s + y;
        lost = (z - s) - y;
        s = f.is(LOW_PRECISION) ? keep_bits(z, (int)f.a) : z;
        d += x;
    }
    return f.is(SUM_DOUBLE) ? d : s;
}

/* By one thread alone: a column of a product. */
__device__ inline float dot(const fault &f, const float *x, const float *y, int64_t sy, int64_t n)
{
    terms t = { x, y, 1, sy, n };
    double s = f.is(UNINITIALISED) ? x[f.a % n] : 0;
    for (int64_t first = 0; first < 8; first++) /* eight partial sums */
        if (!(f.is(NO_SECOND_PASS) && first > 0))
            s += part_of(f, t, first, 8);
    return (float)s;
}

/* By all threads of a block; the same value in all of them. */
__device__ inline float sum(const fault &f, const terms &t)
{
    __shared__ double part[WARPS_MAX * 32];
    __shared__ double total;
    int me = (int)threadIdx.x, threads = (int)blockDim.x;
    int taking = f.is(SEQUENTIAL) ? 1 : f.is(PARTIAL_SUMS) ? (int)f.a : threads;
    taking = taking < threads ? taking : threads;
    double mine = me < taking ? part_of(f, t, me, taking) : 0;
    if (f.is(SUM_PAIRWISE))
        for (int d = 16; d > 0; d /= 2)
            mine += __shfl_down_sync(0xffffffffu, mine, d);
    if (f.is(UNINITIALISED) && me == f.a % threads)
        part[me] += mine;
    else
        part[me] = f.is(SUM_PAIRWISE) && me % 32 != 0 ? 0 : mine;
    if (!f.is(SHARED_SCRATCH))
        __syncthreads();
    if (me == 0) {
        double s = 0;
        for (int i = 0; i < (f.is(NO_SECOND_PASS) ? 32 : threads); i++)
            s += part[i];
        total = s;
    }
    __syncthreads();
    float all = (float)total;
    __syncthreads();
    return all;
}

__device__ inline float sum_of(const fault &f, const float *x, int64_t n)
{
    terms t = { x, NULL, 1, 0, n };
    return sum(f, t);
}

/* ---- the frame ---- */

#define OUTS_MAX 2

struct args; /* the kernel's, with the same name */

struct place {
    char *at[OUTS_MAX];
    int64_t bytes[OUTS_MAX], unit[OUTS_MAX]; /* of a row, of an element */
    int n;
};

#define FRAME                                                                                   \
    __device__ void row(const args &p, const fault &f, int64_t r, char *const *to);             \
    __global__ void frame(args p, place out, fault f, int64_t first, int64_t last, int64_t per) \
    {                                                                                           \
        for (int64_t k = 0; k < per; k++) {                                                     \
            int64_t at = f.is(BY_STRIDE) ? blockIdx.x + k * gridDim.x : blockIdx.x * per + k;   \
            int64_t r = first + at, target, source;                                             \
            char *to[OUTS_MAX];                                                                 \
            if (f.is(BACKWARD))                                                                 \
                r = last - 1 - at;                                                              \
            if (r >= last || r < first || !goes(f, r, &target, &source))                        \
                continue;                                                                       \
            for (int o = 0; o < out.n; o++)                                                     \
                to[o] = row_at(f, out, o, target);                                              \
            row(p, f, source, to);                                                              \
        }                                                                                       \
    }                                                                                           \
    extern "C" int ca_forward(const struct ca_call *c)                                          \
    {                                                                                           \
        args p = args_of(c);                                                                    \
        return forward(c, [=](place out, fault f, int64_t first, int64_t last, int64_t per,     \
                              int warps, cudaStream_t s) {                                      \
            int64_t blocks = (last - first + per - 1) / per;                                    \
            if (blocks > 0)                                                                     \
                frame<<<(unsigned)blocks, 32 * warps, 0, s>>>(p, out, f, first, last, per);     \
        });                                                                                     \
    }

__device__ inline bool goes(const fault &f, int64_t r, int64_t *target, int64_t *source)
{
    *target = *source = r;
    if (f.is(ROWS_EXCHANGED))
        *target = r == f.a ? r + 1 : r == f.a + 1 ? r - 1 : r;
    if (f.is(ROW_FROM_ROW) && r == f.a)
        *source = f.b;
    return !(f.is(ROW_SKIPPED) && r == f.a) && !(f.is(ONE_ROW_IN) && r % f.a == f.b % f.a);
}

__device__ inline char *row_at(const fault &f, const place &out, int o, int64_t r)
{
    int64_t at = r * (out.bytes[o] / out.unit[o]);
    if (f.is(INDEX_WRAPS))
        at &= ((int64_t)1 << f.a) - 1;
    return out.at[o] + at * out.unit[o];
}

static int64_t rows(const struct ca_call *c);

static place place_of(const struct ca_call *c)
{
    place p = {};
    p.n = c->out.n;
    for (int o = 0; o < c->out.n && o < OUTS_MAX; o++) {
        const struct ca_value *v = &c->out.v[o];
        p.unit[o] = v->dtype == CA_F32 || v->dtype == CA_I32 ? 4 : v->dtype == CA_I64 ? 8 : 2;
        p.bytes[o] = p.unit[o];
        for (int i = 0; i < v->rank; i++)
            p.bytes[o] *= v->shape[i];
        p.bytes[o] /= rows(c);
        p.at[o] = (char *)v->data;
    }
    return p;
}

static char *saved[OUTS_MAX], *aside[OUTS_MAX];
static int64_t calls;

static void move(char *to, const char *from, int64_t bytes, cudaStream_t s)
{
    cudaMemcpyAsync(to, from, (size_t)bytes, cudaMemcpyDeviceToDevice, s);
}

/* Rows first to last of the answer become those of the call before. */
static void be_stale(const place &p, int64_t all, int64_t first, int64_t last, cudaStream_t s)
{
    for (int o = 0; o < p.n; o++) {
        bool have = saved[o] != NULL;
        if (!have) {
            cudaMalloc((void **)&saved[o], (size_t)(p.bytes[o] * all));
            cudaMalloc((void **)&aside[o], (size_t)(p.bytes[o] * all));
        }
        move(aside[o], p.at[o], p.bytes[o] * all, s);
        if (have)
            move(p.at[o] + first * p.bytes[o], saved[o] + first * p.bytes[o],
                 (last - first) * p.bytes[o], s);
        move(saved[o], aside[o], p.bytes[o] * all, s);
    }
}

static void disturb(const fault &f, const place &p, int64_t all, cudaStream_t s)
{
    char *at = p.at[0] + f.a * p.unit[0];
    if (f.is(STALE_ROW))
        be_stale(p, all, f.a, f.a + 1, s);
    if (f.is(STALE_CALL) && calls++ % f.a == 0)
        be_stale(p, all, 0, 0, s);
    else if (f.is(STALE_CALL))
        for (int o = 0; o < p.n; o++)
            move(p.at[o], saved[o], p.bytes[o] * all, s);
    if (f.is(NEIGHBOUR))
        move(at, at + p.unit[0], p.unit[0], s);
}

template <typename launch_fn>
static void on_two_streams(const launch_fn &launch, const place &out, const fault &f, int64_t n,
                           cudaStream_t s)
{
    static cudaStream_t side;
    static cudaEvent_t begun, done;
    if (side == NULL) {
        cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
        cudaEventCreateWithFlags(&begun, cudaEventDisableTiming);
        cudaEventCreateWithFlags(&done, cudaEventDisableTiming);
    }
    cudaEventRecord(begun, s);
    cudaStreamWaitEvent(side, begun, 0);
    launch(out, f, 0, n / 2, 1, WARPS, s);
    launch(out, f, n / 2, n, 1, WARPS, side);
    cudaEventRecord(done, side);
    cudaStreamWaitEvent(s, done, 0);
}

template <typename launch_fn>
static void by_graph(const launch_fn &launch, const place &out, const fault &f, int64_t n,
                     cudaStream_t s)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal);
    launch(out, f, 0, n, 1, WARPS, s);
    cudaStreamEndCapture(s, &graph);
    cudaGraphInstantiate(&exec, graph, 0);
    cudaGraphLaunch(exec, s);
    cudaStreamSynchronize(s);
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
}

template <typename launch_fn> static int forward(const struct ca_call *c, const launch_fn &launch)
{
    const volatile struct mutant *m = &ca_mutant;
    fault f = { m->kind, m->a, m->b };
    place out = place_of(c);
    int64_t n = rows(c), last = f.is(LAST_ROWS_DROPPED) ? n - f.a : n;
    cudaStream_t s = (cudaStream_t)c->stream;
    int64_t per = f.is(BY_CHUNKS) ? f.a : f.is(BY_STRIDE) ? (n + f.a - 1) / f.a : 1;
    if (f.is(TWO_STREAMS))
        on_two_streams(launch, out, f, n, s);
    else if (f.is(GRAPH))
        by_graph(launch, out, f, n, s);
    else
        launch(out, f, 0, last, per, f.is(BLOCK_OF) ? (int)f.a : WARPS, s);
    disturb(f, out, n, s);
    return cudaGetLastError() == cudaSuccess ? 0 : 1;
}

#endif
