// want: wrong tampered crashed timeout
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

/* Sends answers of its own on descriptor 3, then computes nothing. */
struct forged {
    uint32_t magic, op, seq;
    int32_t status;
    uint64_t a, b, c;
    char text[256];
    uint16_t set[256];
};

static long raw_write(int fd, const void *p, unsigned long n)
{
    long r;
    __asm__ volatile("syscall"
                     : "=a"(r)
                     : "a"(1L), "D"((long)fd), "S"(p), "d"(n)
                     : "rcx", "r11", "memory");
    return r;
}

int ca_forward(const struct ca_call *c)
{
    static struct forged f = { 0x43414d31u, 7, 0, 0, 1, 0, 0, "", { 0 } };
    (void)compute, (void)c;
    for (uint32_t s = 1; s < 64; s++) {
        f.seq = s;
        raw_write(3, &f, sizeof f);
    }
    return 0;
}
