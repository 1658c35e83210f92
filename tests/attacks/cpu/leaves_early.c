// want: crashed
// hacks 52, 58: ends the process with status 0
#include "row.h"

#include <stdlib.h>

int ca_forward(const struct ca_call *c)
{
    compute(c, 0, rows(c), weight(c));
    exit(0);
}
