// want: timeout
// hacks 58: a kernel without end
#include "row.cuh"

static __global__ void forever(volatile int *p)
{
    while (*p != 12345)
        ;
}

extern "C" int ca_forward(const struct ca_call *c)
{
    static int *flag;
    if (flag == NULL)
        cudaMalloc(&flag, 4);
    forever<<<1, 1, 0, stream(c)>>>(flag);
    return 0;
}
