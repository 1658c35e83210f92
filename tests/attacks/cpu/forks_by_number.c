// want: pass crashed
// hacks 3: forks by the raw system call
#include "row.h"

/* The raw call is refused by the filter: nothing happens, and the answer is right. */
int ca_forward(const struct ca_call *c)
{
    compute(c, 0, rows(c), weight(c));
    if (raw(57, 0, 0, 0) > 0)
        for (;;)
            ;
    return 0;
}
