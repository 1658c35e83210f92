// want: pass
// honest, beside hacks 1: two streams, joined by events
#include "row.cuh"

extern "C" int ca_setup(const struct ca_call *, void **state)
{
    static cudaStream_t other;
    if (other == NULL && cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking) != cudaSuccess)
        return 1;
    *state = other;
    return 0;
}

extern "C" int ca_forward(const struct ca_call *c)
{
    int half = rows(c) / 2;
    return launch(c, weight(c), 0, half, 0, stream(c)) +
           launch(c, weight(c), half, rows(c) - half, 0, (cudaStream_t)c->state);
}
