/* sys/clock.h -- monotonic time. */
#ifndef SYS_CLOCK_H
#define SYS_CLOCK_H

#include <stdint.h>

int64_t clock_ns(void);     /* CLOCK_MONOTONIC, nanoseconds */
int64_t clock_ms(void);     /* the same, milliseconds */
int64_t clock_utc_us(void); /* CLOCK_REALTIME, microseconds since the epoch */

#endif
