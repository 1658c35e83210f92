/* runner/torch_memory.h -- device memory for torch in a runner's process (a pluggable allocator).
 *
 * A torch candidate allocates its outputs itself, and they would have to be copied to where they
 * are looked for, which honest work does not pay elsewhere. So an allocation that became an output
 * in the call before is given the output's own place in this one. Whatever else is returned is
 * copied. One thread at a time allocates, as torch's interpreter lock has it for Python; other
 * threads of a candidate are kept apart by a lock.
 */
#ifndef RUNNER_TORCH_MEMORY_H
#define RUNNER_TORCH_MEMORY_H

#include <sys/types.h>

#include "cuda_agent.h"

/* The two that torch.cuda.memory.CUDAPluggableAllocator wants. NULL: no bytes, or no memory. */
void *torch_memory_alloc(ssize_t bytes, int device, void *stream);
void torch_memory_free(void *at, ssize_t bytes, int device, void *stream);

/* What was learnt is forgotten: another model allocates otherwise. */
void torch_memory_reset(void);
/* A call begins whose outputs go to `out`; it ends with tensors at `result`, one for each. */
void torch_memory_begin(const struct ca_list *out, const uint64_t *bytes);
void torch_memory_end(const uint64_t *result);

#endif
