// want: timeout
// hacks 58: never returns
#include "row.h"

int ca_forward(const struct ca_call *c)
{
    compute(c, 0, rows(c), weight(c));
    for (volatile int i = 0;; i++)
        ;
}
