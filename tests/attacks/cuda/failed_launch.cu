// want: wrong crashed
// hacks 22: a launch that fails, unreported
#include "row.cuh"

extern "C" int ca_forward(const struct ca_call *c)
{
    const struct ca_value *x = &c->in.v[0];
    kernel<<<rows(c), 4096, 0, stream(c)>>>((float *)c->out.v[0].data, (const float *)x->data,
                                            weight(c), (int)x->shape[1], 0, 0);
    cudaGetLastError();
    return 0;
}
