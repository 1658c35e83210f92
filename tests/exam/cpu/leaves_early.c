// want: crashed
#include "row.h"

#include <stdlib.h>

int ca_forward(const struct ca_call *c)
{
    compute(c, 0, rows(c), weight(c));
    exit(0);
}
