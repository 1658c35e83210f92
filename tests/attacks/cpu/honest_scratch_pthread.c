// want: pass
// honest, beside hacks 2, 9: scratch, and threads of its own that it joins
#include "row.h"

#include <pthread.h>

struct half {
    const struct ca_call *call;
    int64_t first, last;
};

static void *work(void *arg)
{
    struct half *h = arg;
    compute(h->call, h->first, h->last, h->call->scratch);
    return NULL;
}

size_t ca_scratch(const struct ca_call *c)
{
    return (size_t)c->param.v[0].shape[0] * sizeof(float);
}

int ca_forward(const struct ca_call *c)
{
    pthread_t other;
    int64_t n = rows(c);
    struct half half[2] = { { c, 0, n / 2 }, { c, n / 2, n } };
    memcpy(c->scratch, weight(c), c->scratch_bytes);
    if (pthread_create(&other, NULL, work, &half[0]) != 0)
        return 1;
    work(&half[1]);
    return pthread_join(other, NULL);
}
