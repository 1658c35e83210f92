// want: pass
// honest, beside hacks 35: computes in 16 bits and is paid in that class
#include "row.h"

/* Inside the tolerance, and the verdict names the class. */
static float rounded(float f)
{
    unsigned bits;
    memcpy(&bits, &f, sizeof bits);
    bits = (bits + 0x8000u) & 0xffff0000u;
    memcpy(&f, &bits, sizeof f);
    return f;
}

int ca_forward(const struct ca_call *c)
{
    compute(c, 0, rows(c), weight(c));
    float *y = c->out.v[0].data;
    for (int64_t i = 0; i < rows(c) * c->in.v[0].shape[1]; i++)
        y[i] = rounded(y[i]);
    return 0;
}
