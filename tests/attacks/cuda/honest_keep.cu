// want: pass
// honest, beside hacks 10: keeps packed weights
#include "row.cuh"

extern "C" size_t ca_keep(const struct ca_call *c)
{
    return (size_t)c->param.v[0].shape[0] * sizeof(float);
}

extern "C" int ca_setup(const struct ca_call *c, void **)
{
    return (int)cudaMemcpy(c->keep, weight(c), c->keep_bytes, cudaMemcpyDeviceToDevice);
}

extern "C" int ca_forward(const struct ca_call *c)
{
    return launch(c, (const float *)c->keep, 0, rows(c), 0, stream(c));
}
