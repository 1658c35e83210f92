#include "sys/clock.h"

#include <time.h>

static int64_t read_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t); /* cannot fail for these two clocks */
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t clock_ns(void)
{
    return read_ns(CLOCK_MONOTONIC);
}

int64_t clock_ms(void)
{
    return clock_ns() / 1000000;
}

int64_t clock_utc_us(void)
{
    return read_ns(CLOCK_REALTIME) / 1000;
}
