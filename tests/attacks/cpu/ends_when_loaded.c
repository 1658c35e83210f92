// want: crashed
// hacks 52, 58: a constructor ends the process before anybody asks
#include "row.h"

#include <stdlib.h>

__attribute__((constructor)) static void early(void)
{
    exit(0);
}

int ca_forward(const struct ca_call *c)
{
    compute(c, 0, rows(c), weight(c));
    return 0;
}
