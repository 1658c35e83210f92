// want: forbidden
// hacks 3: forks a helper
#include "row.h"

#include <unistd.h>

int ca_forward(const struct ca_call *c)
{
    compute(c, 0, rows(c), weight(c));
    return fork() < 0;
}
