// want: crashed
// fault: writes to address 8
#include "row.h"

int ca_forward(const struct ca_call *c)
{
    compute(c, 0, rows(c), weight(c));
    *(volatile int *)8 = 1;
    return 0;
}
