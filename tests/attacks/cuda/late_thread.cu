// want: tampered wrong
// hacks 2: a host thread launches the work after `done`
#include "row.cuh"

#include <pthread.h>
#include <time.h>

static struct ca_call later;

static void *work(void *arg)
{
    struct timespec pause = { 0, 3000000 };
    cudaStream_t own;
    (void)arg;
    nanosleep(&pause, NULL);
    cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
    launch(&later, weight(&later), 0, rows(&later), 0, own);
    return NULL;
}

extern "C" int ca_forward(const struct ca_call *c)
{
    pthread_t thread;
    later = *c;
    return pthread_create(&thread, NULL, work, NULL) != 0 || pthread_detach(thread) != 0;
}
