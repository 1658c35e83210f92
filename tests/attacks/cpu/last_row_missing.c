// want: wrong
// hacks 34: leaves out the last row
#include "row.h"

int ca_forward(const struct ca_call *c)
{
    compute(c, 0, rows(c) - 1, weight(c));
    return 0;
}
