// want: wrong
// hacks 24: leaves its output as it finds it
#include "row.h"

int ca_forward(const struct ca_call *c)
{
    (void)c;
    return 0;
}
