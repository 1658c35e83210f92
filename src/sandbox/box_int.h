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
    int rung;
    pid_t pid;     /* our child: the program, pid 1 inside; or its warden */
    bool warded;   /* below rung 1, and by a fork server */
    pid_t program; /* as seen from outside */
    int pid_fd;    /* owned */
    int proc_fd;   /* owned, below rung 1: keeps the entry in /proc that a rule is bound to */
    char tmp[64];  /* owned, below rung 1: the folder that stands for /tmp */
    enum box_role role;
    struct box_limit limit;
    int64_t mem_bytes, tmp_bytes, started_ms;
    bool reaped;
    int wait_status;
    pthread_t watch; /* running when watching */
    bool watching;
    _Atomic bool watch_stop, watch_fired;
    _Atomic int64_t watch_peak;
};

/* ---- box.c ---- */
void box_kill(const struct box *b); /* the whole of it; does not wait */
MUST_USE
enum err_code box_run_at(int rung, struct arena *a, const struct box_spec *spec, int64_t wall_ms,
                         size_t out_max, struct box_output *ret, struct err *err);

/* ---- box_own.c: what a box owns ---- */

/* Its uid: ours for a user; for root the owner of its writable folders, else one drawn from
 * its role's. */
uid_t own_uid(const struct box_spec *spec);
/* As root: its writable folders become its own. */
MUST_USE
enum err_code own_folders(const struct box_spec *spec, uid_t uid, struct err *err);
/* Below rung 1: a folder for /tmp. Those of starters that died are swept first. */
MUST_USE
enum err_code own_tmp(uid_t uid, char *ret, size_t room, struct err *err);
void own_tmp_remove(char *dir);
int64_t folder_bytes(const char *dir); /* of all files below */

/* ---- box_names.c: below rung 1, names inside and outside ---- */

/* The same spec by its names outside, `tmp` among its mounts. In the arena. */
struct box_spec names_outside(struct arena *a, const struct box_spec *spec, const char *tmp);
/* What a program said, by the names inside. */
struct str names_inside(struct arena *a, const struct box_spec *spec, const char *tmp,
                        struct str text);

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
enum err_code limit_watch(struct box *b, struct err *err); /* no-op where the kernel limits all */
void limit_unwatch(struct box *b);
const char *limit_kind(void);   /* which kind this machine gives us */
int64_t limit_tasks(uid_t uid); /* processes and threads of all that belongs to uid */

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

/* What every box sees; NULL-terminated. */
extern const char *const seen_folders[], *const seen_files[], *const seen_devices[],
                                                                  *const seen_gpu[];

/* ---- box_wall.c: Landlock ---- */
int wall_abi(void); /* 0: the kernel has none */
/* The spec, by its names outside, is all that the calling process can open from now on. */
int wall_raise(const struct box_spec *spec, struct box_fault *f);

/* ---- box_warden.c: below rung 1 somebody else must be pid 1; a fork server's program has
 * another parent than its starter ---- */

/* In the launcher, before it forks the program. */
void warden_prepare(void);
/* Waits for the program, ends all that it left, and ends as it did. SIGTERM, or the death of
 * whoever started us, ends it at once. */
_Noreturn void warden_main(pid_t program);

/* ---- box_seccomp.c ---- */

/* Load the role's filter. The only execve that it lets pass has its path at
 * `exec_path`: a secret address that is gone after the exec. */
int filter_load(const struct box_spec *spec, int rung, const char *exec_path, struct box_fault *f);

/* ---- box_launch.c ---- */
struct launch {
    int rung;
    uid_t uid;
    const struct box_limit *limit;
    pid_t pid, program; /* out; -1: none */
};
MUST_USE
enum err_code launch(const struct box_spec *spec, struct launch *l, struct err *err);

/* What a launcher has to do. */
struct plan {
    const struct box_spec *spec;
    const struct box_limit *limit;
    int rung;
    bool root, forked;
    uid_t uid;
    int64_t tasks_max; /* of the uid, where it is the box's alone; 0: no limit */
    int report;        /* write end, close-on-exec */
};
/* In a fork of the server whose parent is `owner`; returns in the program, boxed. */
void launch_forked(struct plan *p, pid_t owner);

/* ---- box_fork.c ---- */

/* Hand the plan and its descriptors to spec->fork_server. */
MUST_USE
enum err_code fork_ask(const struct plan *p, struct err *err);

#endif
