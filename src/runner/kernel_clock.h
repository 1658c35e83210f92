/* runner/kernel_clock.h -- the sum of kernel times, as the published workdir's clock takes it.
 *
 * CUPTI's activity records, by dlopen. It runs in the candidate's own process, so it informs and
 * never pays. Its first use in a process costs seconds: the runner opens it only when asked.
 */
#ifndef RUNNER_KERNEL_CLOCK_H
#define RUNNER_KERNEL_CLOCK_H

#include <stdint.h>

/* Start recording kernels, copies and fills. Returns NULL, or why it cannot be (static text). */
const char *kernel_clock_open(void);

/* Nanoseconds of device work recorded since the last call; call after a synchronisation. */
uint64_t kernel_clock_take(void);

#endif
