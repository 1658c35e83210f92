// want: crashed
// hacks 58: takes all device memory and fails, so that the machine seems at fault
#include "row.cuh"

extern "C" int ca_forward(const struct ca_call *)
{
    void *p;
    for (size_t bytes = (size_t)1 << 34; bytes >= (size_t)1 << 20; bytes /= 2)
        while (cudaMalloc(&p, bytes) == cudaSuccess)
            ;
    return 1;
}
