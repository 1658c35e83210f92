// want: wrong
// hacks 24, 49: launches nothing
#include "row.cuh"

extern "C" int ca_forward(const struct ca_call *c)
{
    (void)c;
    return 0;
}
