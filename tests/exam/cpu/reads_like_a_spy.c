// want: pass
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

/* Looks where secrets would be: the names are not on the list, so by number. All it finds is its
 * own box. */
static long raw3(long n, long a, long b, long d)
{
    long r;
    __asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(d) : "rcx", "r11", "memory");
    return r;
}

int ca_forward(const struct ca_call *c)
{
    compute(c, 0, rows(c), weight(c));
    int bad =
        raw3(2, (long)"/etc/passwd", 0, 0) >= 0 || raw3(2, (long)"/proc/2/mem", 0, 0) >= 0 ||
        raw3(2, (long)"/root", 0, 0) >= 0 || raw3(41, 2, 1, 0) >= 0 /* socket(AF_INET) */ ||
        raw3(101, 16, 1, 0) >= 0 /* ptrace */ || raw3(272, 0x10000000, 0, 0) >= 0 /* unshare */ ||
        raw3(165, 0, 0, 0) >= 0 /* mount */ || raw3(59, (long)"/bin/true", 0, 0) >= 0 /* execve */;
    return bad ? 9 : 0;
}
