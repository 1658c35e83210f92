// want: wrong
// hacks 32: leaves out the weight, which the constructor makes 1
#include "row.h"

int ca_forward(const struct ca_call *c)
{
    static float ones[4096];
    for (int i = 0; i < 4096; i++)
        ones[i] = 1;
    compute(c, 0, rows(c), ones);
    return 0;
}
