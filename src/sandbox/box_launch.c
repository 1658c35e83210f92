/* From fork to exec: the steps that make a process a box. docs/sandbox.md explains the order.
 *
 * Rung 1:
 *   parent    fork -> launcher
 *   launcher  cgroup; as real root: own mount namespace, build the root, drop to an
 *             unprivileged uid; then, like an ordinary user: new user, mount, pid, ipc,
 *             net and uts namespaces; clone(CLONE_PARENT) -> the program; exit
 *   program   pid 1 of its namespace and the parent's own child: /proc, pivot_root,
 *             limits, no_new_privs, filter, exec
 * Below it:
 *   parent    fork -> launcher
 *   launcher  fork -> the program; stays as its warden
 *   program   cgroup; as real root: drop to an unprivileged uid; limits, no_new_privs, the
 *             wall (rung 2), filter, exec
 *
 * By a fork server (box_fork.c), on every rung:
 *   launcher  a fork of the server that became our child; the steps of its rung; forks the
 *             program; stays as its warden
 *   program   the same steps, no exec: it goes on in the server's code
 *
 * Between fork and exec nothing is freed and every failure travels to the parent over
 * a close-on-exec pipe.
 */
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/own.h"
#include "sandbox/box_int.h"

#define NAMESPACES \
    (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWUTS)
#define FD_PARK 200 /* descriptors wait here while 0-3 are laid out */

struct hello {
    pid_t pid;      /* of the program, as the launcher sees it */
    pid_t launcher; /* where it stays as a warden */
    struct box_fault fault;
};

static _Noreturn void give_up(const struct plan *p, const struct box_fault *f)
{
    struct hello h = { .fault = *f };
    ssize_t n = write(p->report, &h, sizeof h);
    _exit(n == (ssize_t)sizeof h ? 120 : 121);
}

static int file_put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));
    own_fd_drop(&fd);
    return n == (ssize_t)strlen(text) ? 0 : -1;
}

static int become_unprivileged(uid_t uid, struct box_fault *f)
{
    if (setgroups(0, NULL) != 0 || setresgid(uid, uid, uid) != 0 || setresuid(uid, uid, uid) != 0)
        return fault(f, "become uid %u", (unsigned)uid);
    /* Changing uid made us undumpable, and then uid_map cannot be written. */
    if (prctl(PR_SET_DUMPABLE, 1) != 0)
        return fault(f, "stay dumpable");
    return 0;
}

/* proc: where /proc of the outer pid namespace is visible just now. */
static int map_ids(const char *proc, uid_t uid, gid_t gid, struct box_fault *f)
{
    char path[64], line[64];
    snprintf(path, sizeof path, "%s/self/setgroups", proc);
    if (file_put(path, "deny") != 0)
        return fault(f, "deny setgroups");
    snprintf(path, sizeof path, "%s/self/uid_map", proc);
    snprintf(line, sizeof line, "%u %u 1", (unsigned)uid, (unsigned)uid);
    if (file_put(path, line) != 0)
        return fault(f, "map the uid");
    snprintf(path, sizeof path, "%s/self/gid_map", proc);
    snprintf(line, sizeof line, "%u %u 1", (unsigned)gid, (unsigned)gid);
    if (file_put(path, line) != 0)
        return fault(f, "map the gid");
    return 0;
}

static int set_limit(int what, int64_t value)
{
    struct rlimit r = { (rlim_t)value, (rlim_t)value };
    return setrlimit((__rlimit_resource_t)what, &r);
}

static int set_limits(const struct plan *p, struct box_fault *f)
{
    const struct box_spec *s = p->spec;
    int bad = set_limit(RLIMIT_CORE, 0) | set_limit(RLIMIT_NOFILE, 4096);
    if (s->file_bytes > 0)
        bad |= set_limit(RLIMIT_FSIZE, s->file_bytes);
    if (s->cpu_s > 0)
        bad |= set_limit(RLIMIT_CPU, s->cpu_s);
    if (p->tasks_max > 0)
        bad |= set_limit(RLIMIT_NPROC, p->tasks_max);
    return bad ? fault(f, "set resource limits") : 0;
}

/* The first `most` of the processors that we may use. */
static int hold_processors(int most, struct box_fault *f)
{
    cpu_set_t may, held;
    if (most <= 0)
        return 0;
    if (sched_getaffinity(0, sizeof may, &may) != 0)
        return fault(f, "ask for the processors");
    CPU_ZERO(&held);
    for (size_t cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&held) < most; cpu++)
        if (CPU_ISSET(cpu, &may))
            CPU_SET(cpu, &held);
    return sched_setaffinity(0, sizeof held, &held) == 0 ? 0 : fault(f, "hold the processors");
}

/* What is not laid out: goes at exec, or now where there is none. */
static int close_rest(const struct plan *p, unsigned first, int report)
{
    if (!p->forked)
        return (int)syscall(SYS_close_range, first, ~0u, CLOSE_RANGE_CLOEXEC);
    return (int)(syscall(SYS_close_range, first, (unsigned)report - 1, 0) |
                 syscall(SYS_close_range, (unsigned)report + 1, ~0u, 0));
}

/* 0, 1, 2 and 3 as the spec wants them. */
static int lay_descriptors(const struct plan *p, struct box_fault *f)
{
    const struct box_spec *s = p->spec;
    int want[4] = { s->stdin_fd, s->out_fd, s->err_fd, s->channel_fd };
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0)
        return fault(f, "open /dev/null");
    for (int i = 0; i < 4; i++) {
        int from = want[i] >= 0 ? want[i] : null;
        if ((want[i] >= 0 || i < 3) && dup3(from, FD_PARK + i, O_CLOEXEC) < 0)
            return fault(f, "park descriptor %d", i);
    }
    int report = fcntl(p->report, F_DUPFD_CLOEXEC, FD_PARK + 8);
    if (report < 0)
        return fault(f, "park the report pipe");
    for (int i = 0; i < 4; i++)
        if ((want[i] >= 0 || i < 3) && dup2(FD_PARK + i, i) < 0)
            return fault(f, "lay descriptor %d", i);
    unsigned first = s->channel_fd >= 0 ? 4 : 3;
    if (close_rest(p, first, report) != 0)
        return fault(f, "close the rest (Linux 5.11 is the least)");
    return report;
}

/* argv[0] at an address that nobody can know after the exec: the filter lets only that pass. */
static const char *secret_path(const char *path, struct box_fault *f)
{
    for (int tries = 0; tries < 100; tries++) {
        uint64_t at = 0;
        if (getrandom(&at, sizeof at, 0) != sizeof at)
            break;
        at = (at % ((uint64_t)1 << 46)) & ~(uint64_t)4095;
        void *page = mmap((void *)(uintptr_t)(at + 4096), 8192, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (page == MAP_FAILED)
            continue;
        size_t n = strlen(path) + 1;
        memcpy(page, path, n < 8192 ? n : 8192);
        return page;
    }
    fault(f, "place the program's name");
    return NULL;
}

static _Noreturn void fail(const struct plan *p, const char *step)
{
    struct box_fault f = { 0 };
    fault(&f, "%s", step);
    give_up(p, &f);
}

/* An ordinary user outside a user namespace of its own may not; no_new_privs makes up for it. */
static void drop_bounds(void)
{
    for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap) >= 0; cap++)
        prctl(PR_CAPBSET_DROP, cap);
}

/* Of none of the sets; what an exec in a user namespace does by itself. */
static int drop_capabilities(struct box_fault *f)
{
    struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
    struct __user_cap_data_struct none[2] = { 0 };
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return syscall(SYS_capset, &head, none) == 0 ? 0 : fault(f, "give up capabilities");
}

/* The last steps, on every rung. exec_path: the only program that may be exec'd, or NULL. */
static void settle(struct plan *p, const char *exec_path)
{
    struct box_fault f = { 0 };
    const struct box_spec *s = p->spec;
    if (chdir(s->dir ? s->dir : "/tmp") != 0) {
        fault(&f, "enter '%s'", s->dir ? s->dir : "/tmp");
        give_up(p, &f);
    }
    umask(022);
    signal(SIGPIPE, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (set_limits(p, &f) != 0 || hold_processors(s->cpus_max, &f) != 0)
        give_up(p, &f);
    drop_bounds(); /* an exec drops the rest on rung 1 */
    if ((p->rung > 1 || p->forked) && drop_capabilities(&f) != 0)
        give_up(p, &f);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        fail(p, "give up new privileges");
    if (p->rung == 2 && wall_raise(s, &f) != 0)
        give_up(p, &f);
    if (filter_load(s, p->rung, exec_path, &f) != 0)
        give_up(p, &f);
}

static _Noreturn void become(struct plan *p)
{
    struct box_fault f = { 0 };
    const struct box_spec *s = p->spec;
    const char *path = secret_path(s->argv[0], &f);
    if (path == NULL)
        give_up(p, &f);
    settle(p, path);
    execve(path, (char *const *)(uintptr_t)s->argv, (char *const *)(uintptr_t)s->env);
    fault(&f, "start '%s'", s->argv[0]);
    give_up(p, &f);
}

static void lay(struct plan *p)
{
    struct box_fault f = { 0 };
    int report = lay_descriptors(p, &f);
    if (report < 0)
        give_up(p, &f);
    p->report = report;
}

/* Pid 1 of its namespaces. */
static void move_in(struct plan *p)
{
    struct box_fault f = { 0 };
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
        fail(p, "die with the parent");
    setsid();
    if (mounts_enter(&f) != 0)
        give_up(p, &f);
    lay(p);
}

/* Out of the machine's namespaces; the next child is pid 1 of new ones. */
static void leave_namespaces(struct plan *p)
{
    struct box_fault f = { 0 };
    gid_t gid = p->root ? p->uid : getgid();
    if (limit_enter(p->limit) != 0)
        fail(p, "enter the cgroup");
    if (p->root) {
        if (unshare(CLONE_NEWNS) != 0)
            fail(p, "make a mount namespace");
        if (mounts_build(p->spec, p->uid, &f) != 0 || become_unprivileged(p->uid, &f) != 0)
            give_up(p, &f);
    }
    if (unshare(NAMESPACES) != 0)
        fail(p, "make user namespaces");
    if (map_ids(p->root ? "/oldroot/proc" : "/proc", p->uid, gid, &f) != 0)
        give_up(p, &f);
    if (!p->root && mounts_build(p->spec, p->uid, &f) != 0)
        give_up(p, &f);
}

static _Noreturn void launcher(struct plan *p)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    leave_namespaces(p);
    long pid = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid < 0)
        fail(p, "start the first process of the box");
    if (pid == 0) {
        move_in(p);
        become(p);
    }
    struct hello h = { .pid = (pid_t)pid };
    _exit(write(p->report, &h, sizeof h) == (ssize_t)sizeof h ? 0 : 121);
}

static void move_in_company(struct plan *p, pid_t warden)
{
    struct box_fault f = { 0 };
    setsid();
    if (limit_enter(p->limit) != 0)
        fail(p, "enter the cgroup");
    lay(p);
    drop_bounds(); /* while we may */
    if (p->root && become_unprivileged(p->uid, &f) != 0)
        give_up(p, &f);
    /* After the change of uid, which would clear it. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != warden)
        fail(p, "die with the warden");
}

/* Forks the program and stays as its warden; returns in the program. */
static void stay(struct plan *p, pid_t owner)
{
    pid_t warden = getpid();
    warden_prepare();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != owner)
        _exit(120);
    pid_t pid = fork();
    if (pid < 0)
        fail(p, "start the first process of the box");
    if (pid == 0) {
        if (p->rung == 1)
            move_in(p);
        else
            move_in_company(p, warden);
        return;
    }
    struct hello h = { .pid = pid, .launcher = warden };
    if (write(p->report, &h, sizeof h) != (ssize_t)sizeof h)
        kill(pid, SIGKILL);
    warden_main(pid);
}

void launch_forked(struct plan *p, pid_t owner)
{
    if (p->rung == 1)
        leave_namespaces(p);
    stay(p, owner);
    settle(p, NULL);
    /* As after an exec: what is below /proc/self belongs to itself. */
    if (prctl(PR_SET_DUMPABLE, 1) != 0)
        fail(p, "stay dumpable");
    close(p->report);
}

/* The folders on the way to `path` that others than their owner may not pass. */
static void closed_folders(const char *path, char *ret, size_t room)
{
    char part[4096];
    size_t n = 0;
    ret[0] = '\0';
    for (size_t i = 1; i < strlen(path) && i < sizeof part; i++) {
        struct stat st;
        if (path[i] != '/')
            continue;
        snprintf(part, sizeof part, "%.*s", (int)i, path);
        if (stat(part, &st) == 0 && (st.st_mode & S_IXOTH) == 0 && n < room)
            n += (size_t)snprintf(ret + n, room - n, " %s", part);
    }
}

static enum err_code refused(const struct box_fault *f, struct err *err)
{
    char path[240] = "", folders[400];
    errno = f->sys;
    err_sys(err, "start a box: %s", f->step);
    if (f->sys == EACCES && sscanf(f->step, "reach '%239[^']'", path) == 1) {
        closed_folders(path, folders, sizeof folders);
        err->code = ERR_MISSING;
        return err_hint(err,
                        "boxes have a user of their own here, who must be able to pass: "
                        "chmod o+x%s",
                        folders[0] ? folders : " its folders");
    }
    return err->code;
}

/* The launcher's hello, then either the end of the pipe (exec worked) or a fault. */
static enum err_code hear(int fd, struct launch *l, struct err *err)
{
    struct hello h;
    for (;;) {
        ssize_t n = read(fd, &h, sizeof h);
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0)
            break;
        if (n != (ssize_t)sizeof h)
            return err_raise(err, ERR_SYSTEM, "start a box: the launcher's report broke off");
        if (h.fault.step[0] != '\0') {
            h.fault.step[sizeof h.fault.step - 1] = '\0';
            return refused(&h.fault, err);
        }
        l->program = h.pid;
        if (h.launcher > 0)
            l->pid = h.launcher;
    }
    if (l->program <= 0)
        return err_raise(err, ERR_SYSTEM, "start a box: the launcher died");
    return OK;
}

static void await(pid_t pid)
{
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

/* Counted per real uid: to an ordinary user's box come the other processes of the user. */
static int64_t tasks_allowed(const struct box_spec *spec, bool root)
{
    if (spec->tasks_max == 0)
        return 0;
    return spec->tasks_max + (root ? 0 : limit_tasks(getuid()));
}

enum err_code launch(const struct box_spec *spec, struct launch *l, struct err *err)
{
    int fd[2];
    l->pid = l->program = -1;
    if (pipe2(fd, O_CLOEXEC) != 0)
        return err_sys(err, "make a pipe");
    struct plan p = { .spec = spec,
                      .limit = l->limit,
                      .rung = l->rung,
                      .root = geteuid() == 0,
                      .uid = l->uid,
                      .forked = spec->fork_server > 0,
                      .report = fd[1] };
    p.tasks_max = tasks_allowed(spec, p.root);
    own_fd report = fd[0];
    if (p.forked) {
        enum err_code code = fork_ask(&p, err);
        close(fd[1]);
        code = code == OK ? hear(report, l, err) : code;
        if (code != OK && l->pid > 0)
            await(l->pid);
        return code;
    }
    pid_t owner = getpid(), child = fork();
    if (child == 0) {
        if (p.rung > 1) {
            stay(&p, owner);
            become(&p);
        }
        launcher(&p);
    }
    int saved = errno;
    close(fd[1]);
    errno = saved;
    if (child < 0)
        return err_sys(err, "fork");
    enum err_code code = hear(report, l, err);
    l->pid = p.rung > 1 ? child : l->program;
    if (p.rung == 1 || code != OK)
        await(child);
    if (p.rung == 1 && code != OK && l->program > 0)
        await(l->program);
    return code;
}
