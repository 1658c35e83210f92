// want: wrong
// hacks 34: leaves out one row in 64
#include "row.h"

int ca_forward(const struct ca_call *c)
{
    for (int64_t r = 0; r < rows(c); r++)
        if (r % 64 != 17)
            compute(c, r, r + 1, weight(c));
    return 0;
}
