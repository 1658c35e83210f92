// want: pass
// hacks 19: threads that burn while PyTorch is timed
#include "row.h"

#include <pthread.h>

static volatile int working;

/* Keeps the processor busy whenever no call of its own runs: PyTorch is not slowed by it, because
 * the runner is stopped then. */
static void *burn(void *arg)
{
    (void)arg;
    for (;;)
        while (!working)
            ;
    return NULL;
}

int ca_forward(const struct ca_call *c)
{
    static int started = 0;
    pthread_t thread;
    if (!started && pthread_create(&thread, NULL, burn, NULL) != 0)
        return 1;
    started = 1;
    working = 1;
    compute(c, 0, rows(c), weight(c));
    working = 0;
    return 0;
}
