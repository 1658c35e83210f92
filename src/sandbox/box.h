/* sandbox/box.h -- run one program where it can do no harm.
 *
 * A box is a process tree with no capability, no_new_privs, a seccomp filter, its
 * own uid where the starter is root, and limits on memory, time, processes and
 * files; nothing in it ever has real uid 0. What stands between it and the rest of
 * the machine is, in the order of strength, the rung of a ladder:
 *   1  namespaces (user, mount, pid, net, ipc, uts) with a minimal read-only root
 *   2  Landlock, where namespaces are refused (default containers, Ubuntu 24.04):
 *      files by their paths outside, no connection, no signal to others
 *   3  neither: only by box_choose(BOX_DISPOSABLE), for a machine to be thrown away
 * docs/sandbox.md tells the order of steps and why.
 *
 * Includes: core, sys. Knows nothing of tasks, kernels or agents.
 * Threads:  one thread at a time per box; different boxes are independent.
 * Errors:   ERR_MISSING (no box can be had here; the hint says how to mend it),
 *           ERR_SYSTEM, ERR_LIMIT. What the *program* did wrong is a result.
 */
#ifndef SANDBOX_BOX_H
#define SANDBOX_BOX_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/arena.h"
#include "core/err.h"
#include "core/str.h"

enum box_role {
    BOX_BUILDER,  /* compilers: may start processes; no GPU, no channel */
    BOX_WORKER,   /* the Python worker: may start processes and threads (Inductor calls g++) */
    BOX_RUNNER,   /* the candidate: threads only, no second process, no exec after start */
    BOX_WORKSPACE /* the shell of an author: may start processes; no GPU, no channel, and a uid that
                     no builder has */
};

struct box_mount {
    const char *from; /* path outside; a folder or a file; may lie under a folder that only
                         root can search */
    const char *at;   /* path inside, absolute; NULL: the same */
    bool writable;
    bool optional; /* skip silently when `from` does not exist */
};

enum box_choice {
    BOX_BEST,       /* rung 1, else 2, else none */
    BOX_NAMESPACES, /* rung 1 or none */
    BOX_LANDLOCK,   /* rung 2 or none */
    BOX_DISPOSABLE  /* the best there is, down to rung 3 */
};

struct box_spec {
    enum box_role role;
    const char *const *argv; /* NULL-terminated; argv[0] absolute inside the box */
    const char *const *env;  /* NULL-terminated; all of it */
    const char *dir;         /* working directory inside; NULL: /tmp */
    /* Below rung 1 nothing can be put elsewhere: each `at` that begins a path in argv, env or
     * dir (also after one of "=:," and after -I and -L) is replaced by its `from`, and /tmp by
     * a folder that is the box's own. Writable folders come to belong to the box's uid. */
    const struct box_mount *mounts;
    size_t n_mounts;
    bool gpu;       /* bind the NVIDIA device nodes and driver libraries */
    int channel_fd; /* becomes descriptor 3 inside; -1: none. The caller keeps and closes its own
                       copy */
    int stdin_fd;   /* -1: /dev/null, each */
    int out_fd, err_fd;
    int64_t mem_bytes;  /* resident memory of the whole box; 0: no limit */
    int64_t tmp_bytes;  /* size of /tmp; below rung 1 who goes beyond is killed */
    int64_t file_bytes; /* largest file it may write; 0: no limit */
    int64_t cpu_s;      /* CPU seconds per process; 0: no limit */
    int tasks_max;      /* processes and threads together */
    int cpus_max;       /* it runs on so many of the processors that its starter may use, and cannot
                           choose others; 0: on all */
    int fork_server;    /* the other end of a server's socket: the program is a fork of the server,
                           argv and env are its own; no exec ever. 0: argv is exec'd */
};

struct box; /* opaque */

enum box_end {
    BOX_EXITED,
    BOX_SIGNALLED,
    BOX_TIMED_OUT,
    BOX_OUT_OF_MEMORY /* or, below rung 1, of room in /tmp */
};

struct box_result {
    enum box_end end;
    int status; /* exit status, or the signal's number */
    int64_t wall_ms, mem_peak_bytes;
};

/* What this machine allows. limits_by: "cgroup2", "cgroup1" or "watchdog". detail: for a
 * person; below rung 1 also why it is not higher. */
struct box_facts {
    int rung;
    const char *limits_by;
    char detail[512];
};

/* How far down the ladder boxes of this process may stand; before the first of them. */
void box_choose(enum box_choice choice);

/* Try it: starts /bin/true in a box once per process and remembers the rung. ERR_MISSING
 * with a hint when there is no box to be had. */
MUST_USE
enum err_code box_probe(struct box_facts *ret, struct err *err);

/* Start; returns when the program has been exec'd in its box, or could not be. */
MUST_USE
enum err_code box_start(const struct box_spec *spec, struct box **ret, struct err *err);

/* SIGSTOP every thread in the box and wait until all are in state T, about 0.1 ms; false: within
 * BOX_PAUSE_MS they are not, which is the program's doing. Resume. All are no-ops on a box that
 * ended, which counts as stopped. */
#define BOX_PAUSE_MS 3000
MUST_USE
bool box_pause(struct box *b);
MUST_USE
bool box_paused(const struct box *b); /* is it still? */
void box_resume(struct box *b);

pid_t box_pid(const struct box *b);  /* the program's pid as seen from outside */
int box_end_fd(const struct box *b); /* readable (POLLIN) once the program has ended; borrowed */

/* Wait up to wall_ms (-1: for ever) for the end; kills the whole box when the time is up. */
MUST_USE
enum err_code box_wait(struct box *b, int64_t wall_ms, struct box_result *ret, struct err *err);

/* Kill whatever still runs, remove cgroups and mounts, free. NULL is fine. */
void box_destroy(struct box *b);

/* A fork server: a trusted process with much loaded and no secret ever held, whose forks become
 * programs in boxes. Its starter adopts what it forks (box_adopt, once). The server:
 *     while (box_fork_wait(socket) == 1) {
 *         fork; in the child: fork again, and there channel = box_fork_enter(); ...
 *         wait for the child, which ends at once; box_fork_drop();
 *     }
 * box_fork_enter returns in the boxed program only: its channel, -1 where the spec has none.
 * One thread: the process must not have others when it forks. */
MUST_USE
enum err_code box_adopt(struct err *err);
int box_fork_wait(int sock); /* 1: a request is here; 0: the other end is gone */
int box_fork_enter(void);
void box_fork_drop(void);

/* Start, collect up to out_max bytes of each stream, wait, destroy. out_fd and
 * err_fd of the spec must be -1. Below rung 1 the output's `from`s are turned back into `at`s. */
struct box_output {
    struct box_result result;
    struct str out, err_out; /* in the arena */
    bool out_cut;
};
MUST_USE
enum err_code box_run(struct arena *a, const struct box_spec *spec, int64_t wall_ms, size_t out_max,
                      struct box_output *ret, struct err *err);

#endif
