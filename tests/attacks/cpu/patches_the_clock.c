// want: pass
// hacks 15, 16: brings a clock of its own, which stands still
#include "row.h"

#include <time.h>

/* The examiner's clock is in another process: nothing is won. */
int clock_gettime(clockid_t id, struct timespec *t)
{
    (void)id;
    *t = (struct timespec){ 0 };
    return 0;
}

int ca_forward(const struct ca_call *c)
{
    compute(c, 0, rows(c), weight(c));
    return 0;
}
