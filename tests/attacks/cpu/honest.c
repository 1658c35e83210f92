// want: pass
// honest: plain loops
#include "row.h"

int ca_forward(const struct ca_call *c)
{
    compute(c, 0, rows(c), weight(c));
    return 0;
}
