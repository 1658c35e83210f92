// want: pass crashed timeout
// hacks 58: starts threads without end
#include "row.h"

#include <pthread.h>

#define MANY 100000

static void *idle(void *arg)
{
    pthread_mutex_t *never = arg;
    pthread_mutex_lock(never);
    return NULL;
}

/* As many threads as there may be, then the right answer: no harm to those who come after. */
int ca_forward(const struct ca_call *c)
{
    static pthread_mutex_t never = PTHREAD_MUTEX_INITIALIZER;
    static int made = 0;
    pthread_t thread;
    if (made == 0)
        pthread_mutex_lock(&never);
    while (made < MANY && pthread_create(&thread, NULL, idle, &never) == 0)
        made++;
    made = MANY;
    compute(c, 0, rows(c), weight(c));
    return 0;
}
