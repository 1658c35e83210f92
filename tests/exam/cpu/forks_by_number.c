// want: pass crashed
#include "cuda_agent.h"

#include <math.h>
#include <string.h>

/* y = relu(x * w) + mean(x over the row), x: (rows, dim) f32 */
static void compute(const struct ca_call *c, int64_t first, int64_t last, const float *w)
{
    const struct ca_value *x = &c->in.v[0];
    int64_t dim = x->shape[1];
    for (int64_t r = first; r < last; r++) {
        const float *in = (const float *)x->data + r * dim;
        float *out = (float *)c->out.v[0].data + r * dim;
        float sum = 0;
        for (int64_t i = 0; i < dim; i++)
            sum += in[i];
        for (int64_t i = 0; i < dim; i++)
            out[i] = fmaxf(in[i] * w[i], 0) + sum / (float)dim;
    }
}

static inline const float *weight(const struct ca_call *c)
{
    return c->param.v[0].data;
}

static inline int64_t rows(const struct ca_call *c)
{
    return c->in.v[0].shape[0];
}

/* The raw call is refused by the filter: nothing happens, and the answer is right. */
static long raw(long n)
{
    long r;
    __asm__ volatile("syscall" : "=a"(r) : "a"(n) : "rcx", "r11", "memory");
    return r;
}

int ca_forward(const struct ca_call *c)
{
    compute(c, 0, rows(c), weight(c));
    if (raw(57) > 0)
        for (;;)
            ;
    return 0;
}
