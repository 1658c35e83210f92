// want: timeout setup_timeout crashed
// hacks 3, 4, 58: leaves a kernel on the device that waits for work
#include "row.cuh"

static __global__ void resident(volatile int *stop)
{
    while (!*stop)
        ;
}

extern "C" int ca_setup(const struct ca_call *, void **)
{
    static int *stop;
    cudaStream_t own;
    if (stop != NULL)
        return 0;
    cudaMalloc(&stop, sizeof *stop);
    cudaMemset(stop, 0, sizeof *stop);
    cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
    resident<<<1, 1, 0, own>>>(stop);
    return (int)cudaGetLastError();
}

extern "C" int ca_forward(const struct ca_call *c)
{
    return launch(c, weight(c), 0, rows(c), 0, stream(c));
}
