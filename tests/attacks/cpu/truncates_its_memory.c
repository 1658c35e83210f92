// want: pass
// hacks 26, 58: cuts shared memory short under those who read it
#include "row.h"

int ca_forward(const struct ca_call *c)
{
    compute(c, 0, rows(c), weight(c));
    for (long fd = 3; fd < 256; fd++)
        raw(RAW_FTRUNCATE, fd, 0, 0);
    return 0;
}
