/* sandbox/box_int.h -- what the files of this part share. */
#ifndef SANDBOX_BOX_INT_H
#define SANDBOX_BOX_INT_H

#include <pthread.h>

#include "sandbox/box.h"

/* Limits that the kernel keeps for us, or a thread of ours where it does not. */
struct box_limit {
    const char *by;       /* "cgroup2", "cgroup1", "watchdog" */
    char memory_dir[256]; /* cgroup folder, "" where there is none */
    char pids_dir[256];   /* cgroup v1 only */
};

struct box {
    unsigned magic;
    pid_t pid;  /* as seen from outside; pid 1 inside */
    int pid_fd; /* owned */
    enum box_role role;
    struct box_limit limit;
    int64_t mem_bytes, started_ms;
    bool reaped;
    int wait_status;
    pthread_t watch; /* running when watching */
    bool watching;
    _Atomic bool watch_stop, watch_fired;
    _Atomic int64_t watch_peak;
};

/* ---- box_limit.c ---- */
MUST_USE
enum err_code limit_create(const struct box_spec *spec, struct box_limit *ret, struct err *err);
/* In the launcher: enter by writing our own pid. 0 or -1 with errno. */
int limit_enter(const struct box_limit *l);
bool limit_was_hit(const struct box_limit *l);
int64_t limit_peak(const struct box_limit *l); /* bytes, 0 unknown */
void limit_kill(const struct box_limit *l);    /* cgroup.kill where there is one */
void limit_destroy(struct box_limit *l);
MUST_USE
enum err_code limit_watch(struct box *b, struct err *err); /* no-op with a cgroup */
void limit_unwatch(struct box *b);
const char *limit_kind(void); /* which kind this machine gives us */

/* ---- box_mount.c: runs in the launcher, which may not allocate much and reports by errno ---- */

/* What failed and why, sent to the parent over a pipe. */
struct box_fault {
    int sys;
    char step[240];
};

/* Make "/newroot" ready in a private mount namespace; the old root is at /oldroot. */
int mounts_build(const struct box_spec *spec, uid_t uid, struct box_fault *f);
/* In the new pid namespace: /proc, and /newroot becomes the root. */
int mounts_enter(struct box_fault *f);
int fault(struct box_fault *f, const char *fmt, ...) FORMAT(2, 3); /* keeps errno; returns -1 */

/* ---- box_seccomp.c ---- */

/* Load the role's filter. The only execve that it lets pass has its path at
 * `exec_path`: a secret address that is gone after the exec. */
int filter_load(const struct box_spec *spec, const char *exec_path, struct box_fault *f);

/* ---- box_launch.c ---- */
MUST_USE
enum err_code launch(const struct box_spec *spec, const struct box_limit *limit, pid_t *ret_pid,
                     struct err *err);

#endif
