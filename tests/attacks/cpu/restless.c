// want: pass
// hacks 4: threads that wake their process all the time, so that it is never stopped
#include "row.h"

#include <pthread.h>
#include <signal.h>

enum { RAW_GETPID = 39 };

static void *wake(void *unused)
{
    for (;;)
        raw(RAW_KILL, raw(RAW_GETPID, 0, 0, 0), SIGCONT, 0);
    return unused;
}

int ca_setup(const struct ca_call *call, void **state)
{
    pthread_t t;
    (void)call;
    if (*state == NULL && pthread_create(&t, NULL, wake, NULL) == 0)
        pthread_create(&t, NULL, wake, NULL);
    *state = NULL;
    return 0;
}

int ca_forward(const struct ca_call *c)
{
    compute(c, 0, rows(c), weight(c));
    return 0;
}
