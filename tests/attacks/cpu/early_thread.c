// want: pass wrong
// hacks 4: a thread computes as soon as inputs change, before it is asked
#include "row.h"

#include <pthread.h>

#define PLACES 16

/* While inputs are written before a window, the process is stopped: what it does early it does on
 * the clock. */
static struct ca_call known[PLACES];
static float seen[PLACES];
static volatile int n_known;

static void *work(void *arg)
{
    (void)arg;
    for (;;)
        for (int i = 0; i < n_known; i++) {
            float now = *(volatile const float *)known[i].in.v[0].data;
            if (memcmp(&now, &seen[i], sizeof now) != 0) {
                seen[i] = now;
                compute(&known[i], 0, rows(&known[i]), weight(&known[i]));
            }
        }
    return NULL;
}

int ca_forward(const struct ca_call *c)
{
    static struct ca_value in[PLACES], out[PLACES];
    static int started;
    pthread_t thread;
    if (!started++ && pthread_create(&thread, NULL, work, NULL) != 0)
        return 1;
    compute(c, 0, rows(c), weight(c)); /* right in any case: only the clock is at stake */
    for (int i = 0; i < n_known; i++)
        if (known[i].in.v[0].data == c->in.v[0].data)
            return 0;
    if (n_known < PLACES) {
        in[n_known] = c->in.v[0];
        out[n_known] = c->out.v[0];
        known[n_known] = *c;
        known[n_known].in.v = &in[n_known];
        known[n_known].out.v = &out[n_known];
        n_known++;
    }
    return 0;
}
