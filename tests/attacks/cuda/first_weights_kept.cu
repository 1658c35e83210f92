// want: wrong
// hacks 10, 32: computes for ever with the weights of its first ca_setup
#include "row.cuh"

extern "C" size_t ca_keep(const struct ca_call *c)
{
    return (size_t)c->in.v[0].shape[1] * sizeof(float);
}

extern "C" int ca_setup(const struct ca_call *c, void **)
{
    static int made;
    if (made++)
        return 0;
    size_t bytes = (size_t)c->in.v[0].shape[1] * sizeof(float);
    return (int)cudaMemcpyAsync(c->keep, weight(c), bytes, cudaMemcpyDeviceToDevice, stream(c));
}

extern "C" int ca_forward(const struct ca_call *c)
{
    return launch(c, (const float *)c->keep, 0, rows(c), 0, stream(c));
}
