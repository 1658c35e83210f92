// want: wrong
#include "row.h"

#include <pthread.h>
#include <unistd.h>

static struct ca_call later;

/* Writes the right answer, after the call has returned. */
static void *work(void *arg)
{
    (void)arg;
    usleep(20000);
    compute(&later, 0, rows(&later), weight(&later));
    return NULL;
}

int ca_forward(const struct ca_call *c)
{
    pthread_t thread;
    later = *c;
    return pthread_create(&thread, NULL, work, NULL) != 0 || pthread_detach(thread) != 0;
}
