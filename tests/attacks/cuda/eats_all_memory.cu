// want: pass crashed
// hacks 58: takes all device memory, so that the machine seems at fault
#include "row.cuh"

static void eat(void)
{
    void *p;
    for (size_t bytes = (size_t)1 << 34; bytes >= (size_t)1 << 20; bytes /= 2)
        while (cudaMalloc(&p, bytes) == cudaSuccess)
            ;
    cudaGetLastError();
}

extern "C" int ca_setup(const struct ca_call *, void **)
{
    static int full;
    if (!full++)
        eat();
    return 0;
}

extern "C" int ca_forward(const struct ca_call *c)
{
    return launch(c, weight(c), 0, rows(c), 0, stream(c));
}
