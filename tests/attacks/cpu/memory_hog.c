// want: crashed
// hacks 58: takes memory without end
#include "row.h"

#include <stdlib.h>

int ca_forward(const struct ca_call *c)
{
    compute(c, 0, rows(c), weight(c));
    for (;;) {
        char *p = malloc(64 << 20);
        if (p != NULL)
            memset(p, 1, 64 << 20);
    }
}
