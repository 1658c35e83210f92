/* mutant.h -- the frame of a right kernel that can be made wrong in one chosen way, or right in
 * another way.
 *
 * A kernel writes `row()`, which computes row r of every output, and names what can be done to it
 * in its first lines (tests/mutants/mutants.c reads them):
 *
 *   // task NAME.py
 *   // rows N LENGTH                      adds the faults and right ways of the frame
 *   // sums N | halfs N | dots N           and those of a sum of N terms: float, of two-byte
 * values, a product
 *   // below N                             integer inputs of the equivalence check lie in [0, N)
 *   // fault  KIND NAME A_LO A_HI B_LO B_HI
 *   // honest KIND NAME A_LO A_HI B_LO B_HI
 *
 * One object is all mutants: the tool writes kind, a and b into ca_mutant of a copy.
 */
#ifndef MUTANT_H
#define MUTANT_H

#include "cuda_agent.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct mutant {
    char magic[16];
    int64_t kind, a, b;
};

struct mutant ca_mutant = { "ca-mutant-here!", 0, 0, 0 };

#define KIND (*(volatile int64_t *)&ca_mutant.kind)
#define A (*(volatile int64_t *)&ca_mutant.a)
#define B (*(volatile int64_t *)&ca_mutant.b)
#define is(k) (KIND == (k))

enum {
    RIGHT,
    /* faults of the frame */
    LAST_ROWS_DROPPED, /* a of them */
    ROW_SKIPPED,       /* row a */
    ONE_ROW_IN,        /* of each a the (b mod a)th is skipped */
    STALE_ROW,         /* row a is the one of the call before */
    STALE_CALL,        /* of each a calls one computes, the others give its answer */
    ROWS_EXCHANGED,    /* a and a + 1 */
    INDEX_WRAPS,       /* at 2^a elements */
    NEIGHBOUR,         /* element a is the next one's value */
    ROW_FROM_ROW,      /* row a gets row b's values */
    /* faults of sums */
    HALF_SUM = 20,  /* only a percent of the terms */
    TERM_MISSING,   /* term a */
    TERM_TWICE,     /* term a */
    TAIL_MISSING,   /* of n mod a terms */
    LOW_PRECISION,  /* a bits of mantissa in the accumulator */
    LOST_UPDATE,    /* now and then, once in a terms */
    UNINITIALISED,  /* the accumulator begins with what is in scratch */
    NO_SECOND_PASS, /* only the first of the partial sums of a terms counts */
    ROUNDED_INPUT,  /* terms with a bits of mantissa */
    SHARED_SCRATCH, /* threads race for one accumulator */
    /* faults of kernels: 40 to 99, see there */
    /* right ways */
    BACKWARD = 100, /* rows from the last to the first */
    BY_CHUNKS,      /* of a rows, dealt to the threads */
    BY_STRIDE,      /* every a-th row, then the next of each */
    PARTIAL_SUMS,   /* a of them */
    SUM_BACKWARD,
    SUM_DOUBLE,
    SUM_PAIRWISE, /* down to a terms */
    TENSOR_CORE,  /* terms rounded to a bits: TF32 has 10 */
    KAHAN,
    SEQUENTIAL, /* from left to right into one float */
};

static inline float keep_bits(float x, int bits)
{
    uint32_t u;
    memcpy(&u, &x, 4);
    uint32_t half = 1u << (22 - bits);
    u = (u + half) & ~((half << 1) - 1);
    memcpy(&x, &u, 4);
    return x;
}

static const struct ca_call *current; /* for the scratch of UNINITIALISED */
static volatile float shared;         /* for SHARED_SCRATCH */

static inline int64_t ticks(void)
{
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (int64_t)((uint64_t)high << 32 | low) >> 5;
}

/* Terms of a sum: x[i * sx] * y[i * sy], or x alone. */
struct terms {
    const float *x, *y;
    int64_t sx, sy, n;
};

static inline float term(const struct terms *t, int64_t i)
{
    float x = t->x[i * t->sx], y = t->y ? t->y[i * t->sy] : 1;
    if (is(ROUNDED_INPUT) || is(TENSOR_CORE))
        return keep_bits(x, (int)A) * (t->y ? keep_bits(y, (int)A) : 1);
    return x * y;
}

static float pairwise(const struct terms *t, int64_t first, int64_t last)
{
    float s = 0;
    if (last - first > A)
        return pairwise(t, first, (first + last) / 2) + pairwise(t, (first + last) / 2, last);
    for (int64_t i = first; i < last; i++)
        s += term(t, i);
    return s;
}

static float in_another_way(const struct terms *t)
{
    float part[64] = { 0 }, s = 0, lost = 0;
    double d = 0; /* PARTIAL_SUMS, SUM_BACKWARD, SEQUENTIAL: part */
    if (is(SUM_PAIRWISE))
        return pairwise(t, 0, t->n);
    for (int64_t k = 0; k < t->n; k++) {
        int64_t i = is(SUM_BACKWARD) ? t->n - 1 - k : k;
        float x = term(t, i), y = x - lost, z = s + y;
        part[is(PARTIAL_SUMS) ? k % A : 0] += x;
        d += x;
        lost = (z - s) - y;
        s = z;
    }
    if (is(SUM_DOUBLE))
        return (float)d;
    if (is(KAHAN))
        return s;
    for (int64_t i = 1; i < 64; i++)
        part[0] += part[i];
    return part[0];
}

static float sum(struct terms t)
{
    float s = is(UNINITIALISED) ? ((float *)current->scratch)[A] : 0;
    if (KIND >= PARTIAL_SUMS && KIND != TENSOR_CORE)
        return in_another_way(&t);
    if (is(HALF_SUM))
        t.n = t.n * A / 100;
    if (is(TAIL_MISSING))
        t.n -= t.n % A;
    if (is(NO_SECOND_PASS) && t.n > A)
        t.n = A;
    if (is(SHARED_SCRATCH))
        shared = 0;
    for (int64_t first = 0; first < t.n; first += 32) {
        float block = 0; /* sums of sums: as exact as PyTorch's */
        for (int64_t i = first; i < t.n && i < first + 32; i++) {
            float x = term(&t, i);
            if ((is(TERM_MISSING) && i == A) || (is(LOST_UPDATE) && ticks() % A == 0))
                continue;
            block += is(TERM_TWICE) && i == A ? 2 * x : x;
            if (is(LOW_PRECISION))
                block = keep_bits(block, (int)A);
            if (is(SHARED_SCRATCH))
                shared = shared + x;
        }
        s += block;
        if (is(LOW_PRECISION))
            s = keep_bits(s, (int)A);
    }
    return is(SHARED_SCRATCH) ? shared : s;
}

static inline float sum_of(const float *x, int64_t n)
{
    return sum((struct terms){ x, NULL, 1, 0, n });
}

static inline float dot(const float *x, const float *y, int64_t sy, int64_t n)
{
    return sum((struct terms){ x, y, 1, sy, n });
}

/* ---- the frame ---- */

#define OUTS_MAX 2

static int64_t rows(const struct ca_call *c);                         /* of every output */
static void row(const struct ca_call *c, int64_t r, void *const *to); /* the kernel's */

static size_t item(enum ca_dtype d)
{
    return d == CA_F64 || d == CA_I64 ? 8 : d == CA_F32 || d == CA_I32 ? 4 : d == CA_BOOL ? 1 : 2;
}

static size_t out_bytes(const struct ca_call *c, int o)
{
    size_t n = item(c->out.v[o].dtype);
    for (int i = 0; i < c->out.v[o].rank; i++)
        n *= (size_t)c->out.v[o].shape[i];
    return n;
}

static char *place(const struct ca_call *c, int o, int64_t r)
{
    size_t bytes = out_bytes(c, o) / (size_t)rows(c), unit = item(c->out.v[o].dtype);
    size_t at = (size_t)r * bytes / unit;
    if (is(INDEX_WRAPS))
        at &= ((size_t)1 << A) - 1;
    return (char *)c->out.v[o].data + at * unit;
}

static void compute_row(const struct ca_call *c, int64_t r)
{
    void *to[OUTS_MAX] = { 0 };
    int64_t target = r, source = r;
    if ((is(ROW_SKIPPED) && r == A) || (is(ONE_ROW_IN) && r % A == B % A))
        return;
    if (is(ROWS_EXCHANGED))
        target = r == A ? r + 1 : r == A + 1 ? r - 1 : r;
    if (is(ROW_FROM_ROW) && r == A)
        source = B;
    for (int o = 0; o < c->out.n && o < OUTS_MAX; o++)
        to[o] = place(c, o, target);
    row(c, source, to);
}

static char *saved[OUTS_MAX];

/* Give the answer of the call before, in one row or in all, and remember this one. */
static void be_stale(const struct ca_call *c, int64_t first, int64_t last)
{
    for (int o = 0; o < c->out.n && o < OUTS_MAX; o++) {
        size_t all = out_bytes(c, o), one = all / (size_t)rows(c);
        char *now = malloc(all), *out = c->out.v[o].data;
        memcpy(now, out, all);
        if (saved[o] != NULL)
            memcpy(out + one * (size_t)first, saved[o] + one * (size_t)first,
                   one * (size_t)(last - first));
        free(saved[o]);
        saved[o] = now;
    }
}

static void disturb(const struct ca_call *c)
{
    static int64_t calls;
    size_t unit = item(c->out.v[0].dtype);
    char *out = c->out.v[0].data;
    if (is(STALE_ROW))
        be_stale(c, A, A + 1);
    if (is(STALE_CALL)) {
        if (calls++ % A != 0 && saved[0] != NULL) {
            for (int o = 0; o < c->out.n && o < OUTS_MAX; o++)
                memcpy(c->out.v[o].data, saved[o], out_bytes(c, o));
        } else {
            be_stale(c, 0, 0);
        }
    }
    if (is(NEIGHBOUR))
        memcpy(out + (size_t)A * unit, out + (size_t)(A + 1) * unit, unit);
}

static void all_rows(const struct ca_call *c, int64_t n)
{
    int64_t chunk = is(BY_CHUNKS) ? A : (n + c->threads - 1) / c->threads;
    int64_t step = is(BY_STRIDE) ? A : 1;
    if (is(BY_STRIDE)) {
#pragma omp parallel for num_threads(c->threads)
        for (int64_t first = 0; first < step; first++)
            for (int64_t r = first; r < n; r += step)
                compute_row(c, r);
        return;
    }
#pragma omp parallel for num_threads(c->threads) schedule(dynamic, 1)
    for (int64_t k = 0; k < n; k += chunk)
        for (int64_t r = k; r < n && r < k + chunk; r++)
            compute_row(c, is(BACKWARD) ? n - 1 - r : r);
}

size_t ca_scratch(const struct ca_call *c)
{
    (void)c;
    return 4096;
}

int ca_forward(const struct ca_call *c)
{
    int64_t n = rows(c);
    current = c;
    all_rows(c, is(LAST_ROWS_DROPPED) ? n - A : n);
    disturb(c);
    return 0;
}

#endif
