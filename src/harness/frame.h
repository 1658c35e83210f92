/* harness/frame.h -- frames on the worker's socket: four bytes of length, low one first, and JSON
 * (docs/worker.md). Descriptors may ride on any byte.
 */
#ifndef HARNESS_FRAME_H
#define HARNESS_FRAME_H

#include <jansson.h>

#include "core/err.h"
#include "harness/worker.h"

#define FRAME_MAX ((size_t)64 << 20)

/* ERR_WORKER: the other side has closed. */
MUST_USE
enum err_code frame_send(int sock, const json_t *what, struct err *err);

/* One frame by clock_ms() == until; *ret is owned by the caller. fds may be NULL: descriptors are
 * closed then. ERR_WORKER: closed. ERR_TIMEOUT. ERR_FORMAT: these bytes are no frame, and what
 * follows cannot be told apart any more. ERR_INTERRUPT. */
MUST_USE
enum err_code frame_receive(int sock, int64_t until, struct worker_fds *fds, json_t **ret,
                            struct err *err);

#endif
