// want: pass crashed
// hacks 58: kills whatever it can see
#include "row.h"

int ca_forward(const struct ca_call *c)
{
    compute(c, 0, rows(c), weight(c));
    raw(RAW_KILL, -1, 9, 0);
    raw(RAW_KILL, raw(RAW_GETPPID, 0, 0, 0), 9, 0);
    for (long pid = 2; pid < 100; pid++)
        raw(RAW_KILL, pid, 9, 0);
    return 0;
}
