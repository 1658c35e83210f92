/* harness/plan.h -- the signature and the worker's places as the runner's plan. */
#ifndef HARNESS_PLAN_H
#define HARNESS_PLAN_H

#include <jansson.h>

#include "task/task.h"

/* `bind` is the worker's answer. *ret_fd: a sealed memfd, owned by the caller.
 * ERR_FORMAT, ERR_WORKER when counts or places disagree with the signature. */
MUST_USE
enum err_code plan_make(const struct signature *sig, const json_t *bind, int *ret_fd,
                        uint64_t *ret_bytes, int *ret_sets, struct err *err);

#endif
