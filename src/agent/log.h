/* agent/log.h -- the events of one episode, as a file (docs/agent.md).
 *
 * A line is written before anything depends on it. Keys' values never reach it.
 * Errors: those of sys/runlog.h.
 */
#ifndef AGENT_LOG_H
#define AGENT_LOG_H

#include "agent/redact.h"
#include "sys/runlog.h"

struct log {
    struct runlog file;
    const struct secrets *secrets; /* borrowed */
    int64_t seq;                   /* of the next event */
    bool broken;   /* a line may be there in half: nothing is put behind it, opening cuts it off */
    bool unsynced; /* leave it to the system when lines reach the disk */
};

#define LOG_CLOSED                           \
    {                                        \
        RUNLOG_CLOSED, NULL, 0, false, false \
    }

/* *ret_events: all that is there, a new reference. */
MUST_USE
enum err_code log_open(struct log *l, struct arena *a, const char *path, json_t **ret_events,
                       struct err *err);
/* Takes the reference. What was written, keys' values removed, is *ret_event: a new reference. */
MUST_USE
enum err_code log_put(struct log *l, const char *name, json_t *body, json_t **ret_event,
                      struct err *err);
MUST_USE
enum err_code log_sync(struct log *l, struct err *err);
void log_close(struct log *l);

/* The events that count: without what a `resumed` says was dropped. A new reference. */
json_t *log_alive(const json_t *events);

#endif
