/* sys/runlog.h -- one run as a file of JSON lines: append-only, the truth.
 *
 * Every line is {"v":1, "at":microseconds UTC, "event":name, ...}. A run that died in the
 * middle of a line leaves half a line; opening cuts it off. One process at a time.
 * Errors: ERR_SYSTEM, ERR_STATE (another process writes), ERR_FORMAT (a line that is none).
 */
#ifndef SYS_RUNLOG_H
#define SYS_RUNLOG_H

#include <jansson.h>

#include "core/arena.h"
#include "core/err.h"
#include "core/str.h"

struct runlog {
    int fd; /* -1: closed */
    const char *path;
};

#define RUNLOG_CLOSED \
    {                 \
        .fd = -1      \
    }

/* Open or make. *ret_events: all events that are there, a new reference. */
MUST_USE
enum err_code runlog_open(struct arena *a, const char *path, struct runlog *ret,
                          json_t **ret_events, struct err *err);

/* Append; takes the reference to `event`, also when it fails. */
MUST_USE
enum err_code runlog_add(struct runlog *log, const char *name, json_t *event, struct err *err);

/* The same in two steps: a line that outlives this process, and all lines that outlive the machine.
 * For logs of many small events. */
MUST_USE
enum err_code runlog_put(struct runlog *log, const char *name, json_t *event, struct err *err);
MUST_USE
enum err_code runlog_sync(struct runlog *log, struct err *err);

void runlog_close(struct runlog *log);

/* The events of a log's text, without half a last line; *ret_whole: bytes of whole lines. */
MUST_USE
enum err_code runlog_parse(struct str text, json_t **ret_events, size_t *ret_whole,
                           struct err *err);

#endif
