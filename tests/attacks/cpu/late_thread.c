// want: wrong
// hacks 2: a thread writes the answer after `done`
#include "row.h"

#include <pthread.h>

#define TURNS 100000000L /* a tenth of a second */

static struct ca_call later;

/* Writes the right answer, after the call has returned. */
static void *work(void *arg)
{
    (void)arg;
    for (volatile long i = 0; i < TURNS; i++)
        ;
    compute(&later, 0, rows(&later), weight(&later));
    return NULL;
}

int ca_forward(const struct ca_call *c)
{
    pthread_t thread;
    later = *c;
    return pthread_create(&thread, NULL, work, NULL) != 0 || pthread_detach(thread) != 0;
}
