// want: tampered wrong
// hacks 1: works on a stream that nobody waits for
#include "row.cuh"

/* Says `done` by a forged message as soon as the kernels are queued, ever so many of them. */
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

static __global__ void slow(float *y, size_t n)
{
    for (int k = 0; k < 400; k++)
        for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
             i += (size_t)gridDim.x * blockDim.x)
            y[i] = y[i] * 0.5f;
}

extern "C" int ca_forward(const struct ca_call *c)
{
    static struct forged f = { 0x43414d31u, 7, 0, 0, 1000, 0, 0, "", { 0 } };
    size_t n = (size_t)rows(c) * (size_t)c->in.v[0].shape[1];
    slow<<<264, 256, 0, stream(c)>>>((float *)c->out.v[0].data, n);
    int rc = launch(c, weight(c), 0, rows(c), 0, stream(c));
    for (uint32_t s = 1; s < 200; s++) {
        f.seq = s;
        raw_write(3, &f, sizeof f);
    }
    return rc;
}
