/* harness/runner.h -- one boxed ca-runner, seen from the trusted side.
 *
 * What it answers is a result: it may hang, die or say that it failed. Errors are only
 * what this machine did.
 */
#ifndef HARNESS_RUNNER_H
#define HARNESS_RUNNER_H

#include <stdbool.h>

#include "ca_runner.h"
#include "core/err.h"
#include "sandbox/box.h"
#include "task/candidate.h"

struct runner_config {
    enum target target;
    int threads, device;
    int cpus_max; /* 0: all processors; else so many, and it cannot choose others */
    bool bind;    /* cpu: OpenMP's threads get a core each; the box must let them choose */
    int64_t mem_bytes;
    const char *library_path; /* folders of cudart and cublas outside /usr, ':' between, or "" */
    const char *cuda_root;    /* mounted when it lies outside /usr; may be NULL */
    /* torch: the socket of a fork server, and the folders of its python and of our own; else 0. */
    int fork_server;
    const char *const *folder;
    size_t n_folders;
    const int *slab_fd; /* shared memory from the worker; borrowed */
    const uint64_t *slab_bytes;
    const bool *slab_vmm;
    size_t n_slabs;
    int plan_fd; /* sealed memfd; borrowed */
    uint64_t plan_bytes;
};

struct runner;

/* Start the box and send hello, slabs and plan; returns without waiting for answers, so
 * that the context comes up while something else is done. */
MUST_USE
enum err_code runner_start(const struct runner_config *cfg, struct runner **ret, struct err *err);
void runner_destroy(struct runner *r); /* NULL is fine */
struct box *runner_box(struct runner *r);

enum runner_end {
    RUNNER_ANSWERED,
    RUNNER_HUNG,
    RUNNER_DIED,
    RUNNER_RESTLESS, /* it does not stop */
    RUNNER_WOKEN     /* it was stopped, and is not */
};

struct runner_reply {
    enum runner_end end;
    struct ca_msg msg; /* when it answered; text is made printable */
    char how[160];     /* when it did not: "killed by signal 11 (Segmentation fault)" */
    int64_t limit_ms;  /* what it was given */
};

/* Wait for the answers of runner_start. */
MUST_USE
enum err_code runner_ready(struct runner *r, int64_t limit_ms, struct runner_reply *ret,
                           struct err *err);

/* Stop it, and let it go on as one that nobody woke meanwhile. False: it did not stop, or was
 * woken; *ret says so, and else is as it was. */
MUST_USE
bool runner_stop(struct runner *r, struct runner_reply *ret);
MUST_USE
bool runner_stopped(struct runner *r, struct runner_reply *ret);
void runner_resume(struct runner *r);

/* Is this datagram the answer to message `seq`? Then *ret is a copy whose text is printable. */
bool runner_message(const void *bytes, size_t n, uint32_t seq, struct ca_msg *ret);

/* Send and wait for the one answer. fd: -1, or a descriptor that goes along. */
MUST_USE
enum err_code runner_say(struct runner *r, struct ca_msg *m, int fd, int64_t limit_ms,
                         struct runner_reply *ret, struct err *err);

#endif
