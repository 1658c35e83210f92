// want: pass
// hacks 58: fills the disk that it has
#include "row.h"

int ca_forward(const struct ca_call *c)
{
    static char page[1 << 20];
    long fd = raw(RAW_OPEN, (long)"/tmp/full", 01 | 0100, 0600);
    while (fd >= 0 && raw(RAW_WRITE, fd, (long)page, sizeof page) > 0)
        ;
    compute(c, 0, rows(c), weight(c));
    return 0;
}
