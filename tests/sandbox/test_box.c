/* Each row tries to leave the box, and the wall must hold; a few rows must be allowed.
 *
 * The program is its own probe: with `--probe NAME RUNG LAIR` it runs one attempt, in the box,
 * and says with its exit status whether the wall held. LAIR is a folder outside that anybody may
 * write. Everything runs again as in a container that refuses namespaces (rung 2), and as
 * root once more each as an ordinary user.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/own.h"
#include "sandbox/box.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/proc.h"

#define MIB ((int64_t)1 << 20)

/* ---- probes: run inside; 0: the wall held ---- */

static int rung;         /* outside: of box_probe; inside: told */
static const char *lair; /* outside the box, mode 0777, with "file" (0666) and "socket" */

static int refused(long rc, int want_errno)
{
    if (rc == -1 && errno == want_errno)
        return 0;
    fprintf(stderr, "returned %ld, errno %d\n", rc, rc == -1 ? errno : 0);
    return 1;
}

static int try_socket(int family)
{
    return refused(socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0), EAFNOSUPPORT);
}

static int probe_network(void)
{
    return try_socket(AF_INET) | try_socket(AF_INET6) | try_socket(AF_NETLINK) |
           try_socket(AF_PACKET);
}

static int probe_unshare(void)
{
    return refused(unshare(CLONE_NEWUSER), EPERM) | refused(unshare(CLONE_NEWNS), EPERM);
}

static int probe_clone_namespace(void)
{
    return refused(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0), EPERM);
}

static int probe_clone3(void)
{
    return refused(syscall(SYS_clone3, NULL, 0), ENOSYS);
}

static int probe_fork(void)
{
    return refused(fork(), EPERM) | refused(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0), EPERM);
}

static int probe_exec(void)
{
    static char path[] = "/bin/true";
    char *argv[] = { path, NULL };
    return refused(execve(path, argv, environ), EPERM);
}

static int probe_ptrace(void)
{
    return refused(ptrace(PTRACE_TRACEME, 0, NULL, NULL), EPERM);
}

static int probe_mount(void)
{
    return refused(mount("x", "/tmp", "tmpfs", 0, NULL), EPERM) | refused(chroot("/tmp"), EPERM);
}

static int probe_uid(void)
{
    int want = rung == 1 ? EINVAL : EPERM; /* 0 is not mapped, or not ours */
    return refused(setuid(0), want) | refused(setgid(0), want);
}

static int probe_kernel_doors(void)
{
    return refused(syscall(SYS_bpf, BPF_MAP_CREATE, NULL, 0), EPERM) |
           refused(syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0), EPERM) |
           refused(syscall(SYS_io_uring_setup, 8, NULL), EPERM) |
           refused(syscall(SYS_userfaultfd, 0), EPERM) |
           refused(syscall(SYS_keyctl, 0, 0, 0, 0, 0), EPERM);
}

/* Files through which the kernel would start programs, or show other processes' memory. */
static int probe_kernel_files(void)
{
    static const char *const files[] = { "/proc/sys/kernel/core_pattern",
                                         "/proc/sys/kernel/modprobe",
                                         "/proc/sysrq-trigger",
                                         "/sys/kernel/uevent_helper",
                                         "/sys/fs/cgroup/cgroup.procs",
                                         "/dev/mem",
                                         "/dev/kmsg" };
    int bad = 0;
    for (size_t i = 0; i < COUNT(files); i++) {
        int fd = open(files[i], O_WRONLY | O_CLOEXEC);
        if (fd >= 0)
            fprintf(stderr, "opened %s\n", files[i]);
        bad |= fd >= 0;
    }
    return bad;
}

/* Another way round the mounts: make one writable, enter the parent's namespaces, make a device. */
static int probe_remount(void)
{
    int fd = open("/proc/1/ns/mnt", O_RDONLY | O_CLOEXEC);
    return refused(mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL), EPERM) |
           refused(mount(NULL, "/usr", NULL, MS_REMOUNT | MS_BIND, NULL), EPERM) |
           refused(umount2("/tmp", MNT_DETACH), EPERM) |
           refused(setns(fd < 0 ? 0 : fd, CLONE_NEWNS), EPERM) |
           refused(mknod("/tmp/device", S_IFCHR | 0600, makedev(1, 1)), EPERM) |
           refused(syscall(SYS_pivot_root, "/tmp", "/tmp"), EPERM) |
           refused(syscall(SYS_open_tree, -1, "/", 0), EPERM);
}

static int probe_clocks(void)
{
    struct timespec t = { 0 };
    return refused(clock_settime(CLOCK_REALTIME, &t), EPERM) |
           refused(settimeofday(&(struct timeval){ 0 }, NULL), EPERM);
}

/* They fire in a stopped process, too, and slow down whoever is timed meanwhile. */
/* A stopped runner could be woken by them: SIGCONT when a file is touched. */
static int probe_signals_from_files(void)
{
    struct f_owner_ex owner = { F_OWNER_PID, getpid() };
    int me = getpid();
    return refused(fcntl(0, F_SETOWN, me), EPERM) | refused(fcntl(0, F_SETOWN_EX, &owner), EPERM) |
           refused(fcntl(0, F_SETSIG, SIGCONT), EPERM) | refused(ioctl(0, FIOSETOWN, &me), EPERM) |
           refused(ioctl(0, SIOCSPGRP, &me), EPERM);
}

static int probe_timers(void)
{
    timer_t timer;
    struct itimerval soon = { .it_value = { .tv_sec = 1 } };
    return refused(timer_create(CLOCK_MONOTONIC, NULL, &timer), EPERM) |
           refused(timerfd_create(CLOCK_MONOTONIC, 0), EPERM) |
           refused(setitimer(ITIMER_REAL, &soon, NULL), EPERM);
}

/* Nobody is there to be killed or watched but the program itself. */
static int probe_others(void)
{
    return refused(kill(2, 0), ESRCH) | refused(kill(getppid() ? getppid() : 3, 0), ESRCH) |
           refused(syscall(SYS_pidfd_open, 2, 0), ESRCH) |
           refused(syscall(SYS_process_vm_readv, 1, NULL, 0, NULL, 0, 0), EPERM);
}

/* Below rung 1 others are there, and cannot be reached. */
static int probe_strangers(void)
{
    pid_t them = getppid();
    struct rlimit limit = { 1, 1 };
    struct sched_param sched = { 0 };
    cpu_set_t all;
    siginfo_t info = { .si_code = SI_QUEUE };
    memset(&all, 0xff, sizeof all);
    int pid_fd = (int)syscall(SYS_pidfd_open, them, 0);
    int bad = refused(kill(them, 0), EPERM) | refused(kill(-1, SIGCONT), EPERM) |
              refused(kill(0, SIGCONT), EPERM) | refused(syscall(SYS_tkill, them, 0), EPERM) |
              refused(syscall(SYS_tgkill, them, them, 0), EPERM) |
              refused(syscall(SYS_kill, 0x100000000l | getpid(), 0), EPERM) |
              refused(syscall(SYS_pidfd_send_signal, pid_fd, 0, NULL, 0), EPERM) |
              refused(syscall(SYS_rt_sigqueueinfo, them, SIGCONT, &info), EPERM) |
              refused(prlimit(them, RLIMIT_CPU, &limit, NULL), EPERM) |
              refused(setpriority(PRIO_PROCESS, (id_t)them, 19), EPERM) |
              refused(setpriority(PRIO_USER, 0, 19), EPERM) |
              refused(sched_setaffinity(them, sizeof all, &all), EPERM) |
              refused(sched_setscheduler(them, SCHED_BATCH, &sched), EPERM) |
              refused(fcntl(0, F_SETOWN, them), EPERM) |
              refused(syscall(SYS_process_vm_readv, them, NULL, 0, NULL, 0, 0), EPERM) |
              refused(ptrace(PTRACE_ATTACH, them, NULL, NULL), EPERM) |
              refused(syscall(SYS_shmget, 1, 4096, 0666), EPERM) |
              refused(syscall(SYS_msgget, 1, 0666), EPERM) |
              refused(syscall(SYS_mq_open, "/x", O_RDWR), EPERM);
    return bad | (kill(getpid(), 0) != 0) | (raise(SIGURG) != 0); /* but itself */
}

static int no_entry(const char *path, int how)
{
    int fd = open(path, how | O_CLOEXEC, 0600);
    if (fd >= 0)
        fprintf(stderr, "opened %s\n", path);
    return fd >= 0;
}

/* The files of others, with all that Landlock knows and does not know. */
static int probe_files(void)
{
    char file[256], at[256];
    snprintf(file, sizeof file, "%s/file", lair);
    snprintf(at, sizeof at, "/proc/%d/mem", (int)getppid());
    int bad = no_entry(file, O_RDONLY) | no_entry(file, O_WRONLY) | no_entry(at, O_RDONLY) |
              no_entry("/etc/passwd", O_RDONLY) | (rung > 1 && no_entry("/tmp", O_RDONLY)) |
              no_entry("/dev/tty", O_RDWR) | no_entry("/dev/shm/x", O_CREAT | O_RDWR) |
              no_entry(file, O_RDONLY | O_TRUNC) | no_entry(lair, O_RDONLY | O_DIRECTORY);
    snprintf(at, sizeof at, "/proc/%d/environ", (int)getppid());
    bad |= no_entry(at, O_RDONLY);
    bad |= symlink(file, "link") != 0 || no_entry("link", O_RDONLY);
    snprintf(at, sizeof at, "%s/new", lair);
    bad |= no_entry(at, O_CREAT | O_WRONLY) | (mkdir(at, 0700) == 0) | (symlink("/", at) == 0) |
           (link(file, "mine") == 0) | (rename(file, "mine") == 0) | (unlink(file) == 0) |
           (truncate(file, 0) == 0);
    if (rung == 1) /* it is not there at all */
        return bad | (access(file, F_OK) == 0);
    return bad | refused(chmod(file, 0), EPERM) | refused(chown(file, getuid(), getgid()), EPERM) |
           refused(fchmod(0, 0), EPERM) | refused(utimensat(AT_FDCWD, file, NULL, 0), EPERM) |
           refused(syscall(SYS_setxattr, file, "user.a", "b", 1, 0), EPERM) |
           refused(syscall(452, AT_FDCWD, file, 0, 0), EPERM);
}

static int probe_connect(void)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    snprintf(at.sun_path, sizeof at.sun_path, "%s/socket", lair);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), pair[2];
    int bad = fd < 0 || refused(connect(fd, (struct sockaddr *)&at, sizeof at), ENOENT);
    memcpy(at.sun_path, "\0ca-box-test", 13); /* abstract */
    bad |= connect(fd, (struct sockaddr *)&at, sizeof at.sun_family + 12) == 0;
    if (rung > 1) /* with each message another receiver could be named */
        bad |= refused(socket(AF_UNIX, SOCK_DGRAM, 0), EAFNOSUPPORT) |
               refused(socket(AF_UNIX, SOCK_RAW | SOCK_CLOEXEC, 0), EAFNOSUPPORT) |
               refused(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair), EAFNOSUPPORT);
    return bad;
}

static int probe_terminal(void)
{
    char c = 'x';
    return refused(ioctl(0, TIOCSTI, &c), EPERM);
}

/* 0, 1, 2, the channel at 3, and the folder that we are reading. */
static int probe_descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    int other = 0;
    for (struct dirent *e = d ? readdir(d) : NULL; e != NULL; e = readdir(d))
        if (e->d_name[0] != '.' && atoi(e->d_name) > 3 && atoi(e->d_name) != dirfd(d))
            other++;
    return d == NULL || other > 0 || fcntl(3, F_GETFD) < 0;
}

static void *thread_main(void *arg)
{
    *(int *)arg = 7;
    return NULL;
}

/* Started with cpus_max 1: it has one, and cannot take the others. */
static int probe_processors(void)
{
    cpu_set_t all, have;
    memset(&all, 0xff, sizeof all);
    if (sched_getaffinity(0, sizeof have, &have) != 0 || CPU_COUNT(&have) != 1)
        return 2;
    return refused(sched_setaffinity(0, sizeof all, &all), EPERM);
}

static int probe_thread(void) /* must work */
{
    pthread_t t;
    int got = 0;
    return pthread_create(&t, NULL, thread_main, &got) != 0 || pthread_join(t, NULL) != 0 ||
           got != 7;
}

static int probe_channel(void) /* must work */
{
    char c = 0;
    return write(3, "hi", 2) != 2 || read(3, &c, 1) != 1 || c != '!';
}

static int probe_memory(void) /* must not come back */
{
    volatile char *p = malloc(1024 * MIB);
    for (int64_t i = 0; p != NULL && i < 1024 * MIB; i += 4096)
        p[i] = 1;
    return 1;
}

static int probe_file_size(void)
{
    signal(SIGXFSZ, SIG_IGN);
    static char block[65536];
    int fd = open("big", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    while (fd >= 0 && write(fd, block, sizeof block) > 0)
        continue;
    return errno == EFBIG && lseek(fd, 0, SEEK_CUR) == MIB ? 0 : 1;
}

static int probe_tmp_size(void)
{
    static char block[65536];
    int fd = open("big", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    for (int i = 0; fd >= 0 && i < 1024; i++)
        if (write(fd, block, sizeof block) < 0)
            return errno == ENOSPC ? 0 : 1;
    return 1;
}

/* Below rung 1 the folder has no size of its own: who writes too much is killed. */
static int probe_tmp_flood(void)
{
    static char block[1 << 20];
    int fd = open("big", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    for (int i = 0; fd >= 0 && i < 256; i++)
        if (write(fd, block, sizeof block) < 0)
            return 2;
    poll(NULL, 0, 8000);
    return 1;
}

static int probe_spin(void) /* for limits of time */
{
    for (volatile unsigned long i = 0;; i++)
        continue;
    return 1;
}

/* A byte every millisecond: who reads them sees whether we are stopped. */
static int probe_tick(void)
{
    while (write(3, ".", 1) == 1)
        usleep(1000);
    return 0;
}

static const struct {
    const char *name;
    int (*run)(void);
    enum box_role role;
    int rung; /* only there; 0: everywhere */
} probes[] = {
    { "network", probe_network, BOX_RUNNER, 0 },
    { "network of a worker", probe_network, BOX_WORKER, 0 },
    { "network of a builder", probe_network, BOX_BUILDER, 0 },
    { "unshare", probe_unshare, BOX_RUNNER, 0 },
    { "unshare of a builder", probe_unshare, BOX_BUILDER, 0 },
    { "clone with a namespace", probe_clone_namespace, BOX_WORKER, 0 },
    { "clone3", probe_clone3, BOX_RUNNER, 0 },
    { "fork", probe_fork, BOX_RUNNER, 0 },
    { "exec", probe_exec, BOX_RUNNER, 0 },
    { "ptrace", probe_ptrace, BOX_WORKER, 0 },
    { "mount", probe_mount, BOX_WORKER, 0 },
    { "uid 0", probe_uid, BOX_WORKER, 0 },
    { "doors of the kernel", probe_kernel_doors, BOX_RUNNER, 0 },
    { "files of the kernel", probe_kernel_files, BOX_RUNNER, 0 },
    { "files of the kernel, worker", probe_kernel_files, BOX_WORKER, 0 },
    { "files of the kernel, builder", probe_kernel_files, BOX_BUILDER, 0 },
    { "remount, setns, mknod", probe_remount, BOX_RUNNER, 0 },
    { "remount, setns, mknod of a builder", probe_remount, BOX_BUILDER, 0 },
    { "clocks", probe_clocks, BOX_RUNNER, 0 },
    { "timers", probe_timers, BOX_RUNNER, 0 },
    { "signals_from_files", probe_signals_from_files, BOX_RUNNER, 0 },
    { "other processes", probe_others, BOX_RUNNER, 1 },
    { "strangers", probe_strangers, BOX_RUNNER, 2 },
    { "strangers, worker", probe_strangers, BOX_WORKER, 2 },
    { "strangers, builder", probe_strangers, BOX_BUILDER, 2 },
    { "files", probe_files, BOX_RUNNER, 0 },
    { "files, worker", probe_files, BOX_WORKER, 0 },
    { "files, builder", probe_files, BOX_BUILDER, 0 },
    { "sockets", probe_connect, BOX_RUNNER, 0 },
    { "sockets, worker", probe_connect, BOX_WORKER, 0 },
    { "keys of the terminal", probe_terminal, BOX_RUNNER, 0 },
    { "a thread", probe_thread, BOX_RUNNER, 0 },
    { "size of /tmp", probe_tmp_size, BOX_RUNNER, 1 },
    { "network of a workspace", probe_network, BOX_WORKSPACE, 0 },
    { "unshare of a workspace", probe_unshare, BOX_WORKSPACE, 0 },
    { "ptrace of a workspace", probe_ptrace, BOX_WORKSPACE, 0 },
    { "remount, setns, mknod of a workspace", probe_remount, BOX_WORKSPACE, 0 },
    { "files of the kernel, workspace", probe_kernel_files, BOX_WORKSPACE, 0 },
    { "strangers, workspace", probe_strangers, BOX_WORKSPACE, 2 },
    { "files, workspace", probe_files, BOX_WORKSPACE, 0 },
    /* These have tests of their own. */
    { "descriptors", probe_descriptors, BOX_RUNNER, 0 },
    { "processors", probe_processors, BOX_RUNNER, 0 },
    { "channel", probe_channel, BOX_RUNNER, 0 },
    { "memory", probe_memory, BOX_RUNNER, 0 },
    { "file size", probe_file_size, BOX_RUNNER, 0 },
    { "flood of /tmp", probe_tmp_flood, BOX_RUNNER, 0 },
    { "spin", probe_spin, BOX_RUNNER, 0 },
    { "tick", probe_tick, BOX_RUNNER, 0 },
};
#define PLAIN_PROBES 38 /* the first rows: exit 0 and nothing else to look at */

/* ---- outside ---- */

static const char *const env[] = { "PATH=/usr/bin:/bin", "A=b", NULL };
static struct box_mount mounts[] = { { NULL, "/probe", false, false } }; /* from: main */

static struct box_spec spec_of(enum box_role role, const char *const *argv)
{
    return (struct box_spec){ .role = role,
                              .argv = argv,
                              .env = env,
                              .mounts = mounts,
                              .n_mounts = 1,
                              .channel_fd = -1,
                              .stdin_fd = -1,
                              .out_fd = -1,
                              .err_fd = -1,
                              .mem_bytes = 512 * MIB,
                              .tmp_bytes = 16 * MIB,
                              .tasks_max = 64 };
}

static struct box_output run(struct arena *a, const struct box_spec *spec, int64_t wall_ms)
{
    struct box_output out = { 0 };
    struct err err = { 0 };
    if (box_run(a, spec, wall_ms, 65536, &out, &err) != OK)
        fail_msg("%s", err.text);
    return out;
}

static const char *const rung_text[] = { "0", "1", "2", "3" };

static struct box_output run_probe(struct arena *a, const char *name, enum box_role role)
{
    const char *argv[] = { "/probe", "--probe", name, rung_text[rung], lair, NULL };
    struct box_spec spec = spec_of(role, argv);
    return run(a, &spec, 10000);
}

static void walls(void **state)
{
    (void)state;
    for (size_t i = 0; i < PLAIN_PROBES; i++) {
        own_arena a = { 0 };
        if (probes[i].rung != 0 && probes[i].rung != rung)
            continue;
        struct box_output out = run_probe(&a, probes[i].name, probes[i].role);
        if (out.result.end != BOX_EXITED || out.result.status != 0)
            fail_msg("%s: end %d, status %d: %s", probes[i].name, (int)out.result.end,
                     out.result.status, out.err_out.ptr);
    }
}

/* Shell scripts in a builder's box; the script's output and status are the answer. */
static void seen_from_inside(void **state)
{
    static const struct {
        const char *script, *out;
        int rung; /* only there; 0: everywhere */
    } rows[] = {
        { "grep -E '^Cap(Inh|Prm|Eff|Amb)' /proc/$$/status | grep -vc 0000000000000000", "0\n", 0 },
        { "grep -E '^CapBnd' /proc/$$/status | grep -vc 0000000000000000", "0\n", 1 },
        { "grep -E '^(NoNewPrivs|Seccomp):' /proc/$$/status | tr -s '\\t\\n' ' '",
          "NoNewPrivs: 1 Seccomp: 2 ", 0 },
        { "test \"$(id -u)\" -gt 0 && test \"$(id -g)\" -gt 0 && echo yes", "yes\n", 0 },
        { "grep -c . /proc/$$/uid_map; awk '{print $3}' /proc/$$/uid_map", "1\n1\n", 1 },
        { "touch /x /usr/x /etc/x /dev/x /probe 2>/dev/null; echo $?", "1\n", 0 },
        { "echo hi > x && cat x && test -O x && rm x && echo mine", "hi\nmine\n", 0 },
        { "ls ~root /root /home /var /etc /work /run 2>/dev/null | wc -l", "0\n", 2 },
        { "cat /etc/passwd /proc/1/environ /proc/1/cmdline 2>/dev/null | wc -c", "0\n", 2 },
        { "sh -c 'setsid sh -c \"(sleep 30; echo late) &\"' & echo gone", "gone\n", 0 },
        { "for i in /root /home /var /work /oldroot /newroot /run /boot /etc/passwd /etc/shadow "
          "/sys/fs /sys/class; do test -e $i && echo $i; done; true",
          "", 1 },
        { "ls /dev | tr '\\n' ' '", "full null random urandom zero ", 1 },
        { "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '", "lo\n", 1 },
        { "ls -d /proc/[0-9]* | wc -l | tr -d ' ' | grep -cE '^[1-5]$'", "1\n", 1 },
        { "echo $$; tr '\\0' ' ' < /proc/1/cmdline | cut -c 1-7", "1\n/bin/sh\n", 1 },
        { "kill -0 2 2>/dev/null; kill -9 -1 2>/dev/null; echo alive", "alive\n", 0 },
        { "env | sort | grep -vE '^(PWD|_|SHLVL|OLDPWD)='", "A=b\nPATH=/usr/bin:/bin\n", 0 },
        { "pwd", "/tmp\n", 0 }, /* below rung 1 the answer is turned back */
        { "ulimit -c; ulimit -n", "0\n4096\n", 0 },
        { "cat", "", 0 }, /* no input */
        { "mknod n c 1 3 2>/dev/null; echo $?", "1\n", 0 },
        { "cp /bin/true t && ./t && echo ran", "ran\n", 0 }, /* a builder may */
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        own_arena a = { 0 };
        const char *argv[] = { "/bin/sh", "-c", rows[i].script, NULL };
        struct box_spec spec = spec_of(BOX_BUILDER, argv);
        if (rows[i].rung != 0 && rows[i].rung != rung)
            continue;
        struct box_output out = run(&a, &spec, 10000);
        if (out.result.end != BOX_EXITED || strcmp(out.out.ptr, rows[i].out) != 0)
            fail_msg("%s\nsaid '%s', wanted '%s'; end %d; %s", rows[i].script, out.out.ptr,
                     rows[i].out, (int)out.result.end, out.err_out.ptr);
    }
}

static void ends(void **state)
{
    static const struct {
        const char *script;
        enum box_end end;
        int status;
    } rows[] = {
        { "exit 7", BOX_EXITED, 7 },
        { "ulimit -t 1; while :; do :; done", BOX_SIGNALLED, SIGKILL },
        { "sleep 60", BOX_TIMED_OUT, SIGKILL },
        { "sleep 60 & sleep 60 & wait", BOX_TIMED_OUT, SIGKILL },
        { "exec sleep 60 >&- 2>&-", BOX_TIMED_OUT, SIGKILL },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        own_arena a = { 0 };
        const char *argv[] = { "/bin/sh", "-c", rows[i].script, NULL };
        struct box_spec spec = spec_of(BOX_BUILDER, argv);
        spec.cpu_s = 1;
        int64_t start = clock_ms();
        struct box_output out = run(&a, &spec, i == 1 ? 10000 : 400);
        if (out.result.end != rows[i].end || out.result.status != rows[i].status)
            fail_msg("%s: end %d, status %d", rows[i].script, (int)out.result.end,
                     out.result.status);
        assert_true(clock_ms() - start < 8000);
    }
}

static void limits(void **state)
{
    own_arena a = { 0 };
    const char *argv[] = { "/probe", "--probe", "memory", rung_text[rung], lair, NULL };
    struct box_spec spec = spec_of(BOX_RUNNER, argv);
    (void)state;
    spec.mem_bytes = 64 * MIB;
    struct box_output out = run(&a, &spec, 20000);
    assert_int_equal(out.result.end, BOX_OUT_OF_MEMORY);
    assert_true(out.result.mem_peak_bytes >= 32 * MIB);

    argv[2] = "file size";
    spec = spec_of(BOX_RUNNER, argv);
    spec.file_bytes = 1 * MIB;
    out = run(&a, &spec, 10000);
    assert_int_equal(out.result.end, BOX_EXITED);
    assert_int_equal(out.result.status, 0);
}

static void tmp_is_bounded(void **state)
{
    own_arena a = { 0 };
    (void)state;
    if (rung == 1)
        skip(); /* a row of `walls` */
    struct box_output out = run_probe(&a, "flood of /tmp", BOX_RUNNER);
    assert_int_equal(out.result.end, BOX_OUT_OF_MEMORY);
}

/* What a box leaves running or lying about goes with it, and so does its folder. */
static void leaves_nothing(void **state)
{
    static const char script[] =
        "mkdir -p a/b && touch a/b/c; for i in 1 2 3; do setsid sh -c 'sleep 77 & sleep 77' & done;"
        " (trap '' TERM HUP; sleep 77) & echo $$";
    const char *argv[] = { "/bin/sh", "-c", script, NULL };
    own_arena a = { 0 };
    (void)state;
    struct box_spec spec = spec_of(BOX_BUILDER, argv);
    struct box_output out = run(&a, &spec, 10000);
    assert_int_equal(out.result.end, BOX_EXITED);
    DIR *d = opendir("/proc");
    for (struct dirent *e = d ? readdir(d) : NULL; e != NULL; e = readdir(d)) {
        struct str text;
        struct err err = { 0 };
        const char *path = arena_fmt(&a, "/proc/%s/cmdline", e->d_name);
        if (e->d_name[0] > '9' || file_read(&a, path, 65536, &text, &err) != OK || text.len < 9)
            continue;
        assert_false(memcmp(text.ptr, "sleep\00077", 9) == 0);
    }
    closedir(d);
    d = opendir("/tmp");
    const char *ours = arena_fmt(&a, "cuda-agent-box-%d-", (int)getpid());
    for (struct dirent *e = d ? readdir(d) : NULL; e != NULL; e = readdir(d))
        assert_false(strncmp(e->d_name, ours, strlen(ours)) == 0);
    closedir(d);
}

/* A file that is mounted read-only into a writable folder, closed to writing as it lies there. */
static void frozen_in_workspace(void **state)
{
    static const char script[] =
        "cd /w/sub && id -u; for c in 'echo x >f' 'rm -f f' 'mv f g' 'chmod 666 f' 'ln f g' 'mv "
        "../sub "
        "../s' 'rm -rf ../sub' 'echo x >new'; do (eval \"$c\") 2>/dev/null; echo $?; done; cat f";
    const char *argv[] = { "/bin/sh", "-c", script, NULL };
    own_arena a = { 0 };
    struct err err = { 0 };
    const char *dir = NULL;
    (void)state;
    if (rung != 1)
        skip(); /* Landlock takes back nothing */
    assert_int_equal(dir_temp(&a, "/tmp", "ca-w", &dir, &err), OK);
    const char *sub = path_join(&a, dir, "sub"), *f = path_join(&a, sub, "f");
    assert_int_equal(mkdir(sub, 0755), 0);
    assert_int_equal(file_write(f, S("frozen"), 0444, &err), OK);
    const struct box_mount in[] = { { dir, "/w", true, false },
                                    { sub, "/w/sub", true, false },
                                    { f, "/w/sub/f", false, false } };
    struct box_spec spec = spec_of(BOX_WORKSPACE, argv);
    spec.mounts = in;
    spec.n_mounts = COUNT(in);
    struct box_output out = run(&a, &spec, 10000);
    struct str rest = out.out, uid, want = S("2\n1\n1\n1\n1\n1\n1\n0\nfrozen");
    assert_true(str_cut(&rest, '\n', &uid));
    if (geteuid() == 0)
        assert_true(str_starts(uid, S("5")) && uid.len == 5);
    if (!str_eq(rest, want))
        fail_msg("%s%s", out.out.ptr, out.err_out.ptr);
    assert_int_equal(dir_remove(dir, &err), OK);
}

static void output_is_cut(void **state)
{
    own_arena a = { 0 };
    const char *argv[] = { "/bin/sh", "-c", "head -c 200000 /dev/zero; echo done >&2", NULL };
    struct box_spec spec = spec_of(BOX_BUILDER, argv);
    struct box_output out = { 0 };
    struct err err = { 0 };
    (void)state;
    assert_int_equal(box_run(&a, &spec, 10000, 1000, &out, &err), OK);
    assert_true(out.out_cut);
    assert_int_equal(out.out.len, 1000);
    assert_string_equal(out.err_out.ptr, "done\n");
    assert_int_equal(out.result.status, 0);
}

static void cannot_start(void **state)
{
    static const char *const argv[] = { "/no/such/program", NULL };
    static const char *const true_argv[] = { "/bin/true", NULL };
    const struct box_mount gone[] = { { "/no/such/folder", "/x", false, false } };
    own_arena a = { 0 };
    struct err err = { 0 };
    struct box_output out = { 0 };
    struct box_spec spec = spec_of(BOX_BUILDER, argv);
    (void)state;
    assert_int_equal(box_run(&a, &spec, 1000, 100, &out, &err), ERR_SYSTEM);
    assert_non_null(strstr(err.text, "start '/no/such/program'"));
    spec = spec_of(BOX_BUILDER, true_argv);
    spec.mounts = gone;
    assert_int_equal(box_run(&a, &spec, 1000, 100, &out, &err), ERR_SYSTEM);
    assert_non_null(strstr(err.text, "/no/such/folder"));
}

/* ---- a box that lives ---- */

struct live {
    struct box *box;
    int channel; /* our end */
};

static struct live start(const char *name)
{
    const char *argv[] = { "/probe", "--probe", name, rung_text[rung], lair, NULL };
    struct box_spec spec = spec_of(BOX_RUNNER, argv);
    struct live l = { NULL, -1 };
    struct err err = { 0 };
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    spec.channel_fd = pair[1];
    if (box_start(&spec, &l.box, &err) != OK)
        fail_msg("%s", err.text);
    close(pair[1]);
    l.channel = pair[0];
    return l;
}

static void stop(struct live *l)
{
    box_destroy(l->box);
    close(l->channel);
}

static void held_processors(void **state)
{
    own_arena a = { 0 };
    const char *argv[] = { "/probe", "--probe", "processors", rung_text[rung], lair, NULL };
    struct box_spec spec = spec_of(BOX_RUNNER, argv);
    (void)state;
    spec.cpus_max = 1;
    struct box_output out = run(&a, &spec, 5000);
    assert_int_equal(out.result.end, BOX_EXITED);
    assert_int_equal(out.result.status, 0);
}

static void channel(void **state)
{
    static const char *const names[] = { "channel", "descriptors" };
    (void)state;
    /* Descriptors of ours that must not be seen inside, close-on-exec or not. */
    int leak = open("/dev/null", O_RDONLY), leak_high = dup2(leak, 333);
    for (size_t i = 0; i < COUNT(names); i++) {
        struct live l = start(names[i]);
        struct err err = { 0 };
        struct box_result r = { 0 };
        char got[2] = { 0 };
        if (i == 0) {
            assert_int_equal(recv(l.channel, got, 2, MSG_WAITALL), 2);
            assert_memory_equal(got, "hi", 2);
            assert_int_equal(write(l.channel, "!", 1), 1);
        }
        assert_int_equal(box_wait(l.box, 5000, &r, &err), OK);
        assert_int_equal(r.end, BOX_EXITED);
        assert_int_equal(r.status, 0);
        stop(&l);
    }
    close(leak);
    close(leak_high);
}

/* Ticks that arrive within ms. */
static int ticks(int fd, int ms)
{
    char all[4096];
    int n = 0;
    int64_t until = clock_ms() + ms;
    while (clock_ms() < until) {
        ssize_t got = recv(fd, all, sizeof all, MSG_DONTWAIT);
        n += got > 0 ? (int)got : 0;
        usleep(1000);
    }
    return n;
}

static void pausing(void **state)
{
    struct err err = { 0 };
    struct live l = start("tick");
    (void)state;
    assert_true(ticks(l.channel, 300) > 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(box_pause(l.box, &err), OK);
        ticks(l.channel, 5); /* what was on its way */
        assert_int_equal(ticks(l.channel, 60), 0);
        assert_int_equal(box_resume(l.box, &err), OK);
        assert_true(ticks(l.channel, 300) > 0);
    }
    assert_int_equal(box_pause(l.box, &err), OK);
    pid_t pid = box_pid(l.box);
    stop(&l); /* a paused box dies, too */
    assert_int_equal(kill(pid, 0), -1);
}

static void after_the_end(void **state)
{
    struct err err = { 0 };
    struct box_result r = { 0 };
    struct live l = start("spin");
    (void)state;
    assert_int_equal(box_wait(l.box, 100, &r, &err), OK);
    assert_int_equal(r.end, BOX_TIMED_OUT);
    assert_int_equal(box_pause(l.box, &err), OK); /* no-ops */
    assert_int_equal(box_resume(l.box, &err), OK);
    assert_int_equal(box_wait(l.box, 100, &r, &err), OK); /* and the same answer's pid */
    stop(&l);
    box_destroy(NULL);
}

/* Is the process there and not a zombie? */
static bool lives(pid_t pid)
{
    own_arena a = { 0 };
    struct str stat;
    struct err err = { 0 };
    const char *path = arena_fmt(&a, "/proc/%d/stat", (int)pid);
    return file_read(&a, path, 4096, &stat, &err) == OK && strstr(stat.ptr, ") Z ") == NULL;
}

/* The owner is killed outright: its boxes must go with it. */
static void dies_with_owner(void **state)
{
    int told[2];
    pid_t boxed = 0;
    (void)state;
    assert_int_equal(pipe2(told, O_CLOEXEC), 0);
    pid_t owner = fork();
    if (owner == 0) {
        struct live l = start("spin");
        pid_t pid = box_pid(l.box);
        if (write(told[1], &pid, sizeof pid) != (ssize_t)sizeof pid)
            _exit(1);
        pause();
        _exit(1);
    }
    assert_int_equal(read(told[0], &boxed, sizeof boxed), sizeof boxed);
    assert_true(lives(boxed));
    kill(owner, SIGKILL);
    assert_int_equal(waitpid(owner, NULL, 0), owner);
    for (int i = 0; i < 300 && lives(boxed); i++)
        usleep(10000);
    assert_false(lives(boxed));
    close(told[0]);
    close(told[1]);
}

/* ---- the second run, and main ---- */

static const char *dirname_of(struct arena *a, const char *path)
{
    return arena_fmt(a, "%.*s", (int)(strrchr(path, '/') - path), path);
}

/* What others must not touch: a file, and a socket that listens. */
static int make_lair(struct arena *a)
{
    struct err err = { 0 };
    struct sockaddr_un at = { .sun_family = AF_UNIX }, abstract = { .sun_family = AF_UNIX };
    if (dir_temp(a, "/tmp", "ca-lair", &lair, &err) != OK || chmod(lair, 0777) != 0 ||
        file_write(path_join(a, lair, "file"), S("secret"), 0666, &err) != OK)
        return -1;
    snprintf(at.sun_path, sizeof at.sun_path, "%s/socket", lair);
    memcpy(abstract.sun_path, "\0ca-box-test", 13);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int other = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(fd, (struct sockaddr *)&at, sizeof at) != 0 || listen(fd, 1) != 0 ||
        chmod(at.sun_path, 0666) != 0)
        return -1;
    /* Taken by a test beside this one: that one listens, too. */
    if (bind(other, (struct sockaddr *)&abstract, sizeof at.sun_family + 12) == 0)
        return listen(other, 1);
    return 0;
}

static int lair_is_untouched(struct arena *a)
{
    struct err err = { 0 };
    struct str text;
    int bad = file_read(a, path_join(a, lair, "file"), 100, &text, &err) != OK ||
              !str_eq(text, S("secret")) || path_exists(path_join(a, lair, "new"));
    if (bad)
        print_message("the files outside were touched\n");
    return dir_remove(lair, &err) != OK || bad;
}

/* The program again, from a folder that anybody may read. */
static int again(const char *dir, const char *const *argv)
{
    own_arena a = { 0 };
    struct err err = { 0 };
    struct proc_spec spec = { .argv = argv, .dir = dir, .wall_ms = 100000, .out_max = 1 << 20 };
    struct proc_result p = { .status = 1 };
    if (proc_run(&a, &spec, &p, &err) != OK)
        print_message("%s\n", err.text);
    print_message("%.*s%.*s", STR_FMT(p.out), STR_FMT(p.err_out));
    if (p.status != 0)
        print_message("%s ended with %d\n", argv[0], p.status);
    return p.status != 0;
}

static int copy(struct arena *a, const char *from, const char *to)
{
    struct err err = { 0 };
    struct str bytes;
    if (file_read(a, from, 256 * MIB, &bytes, &err) == OK &&
        file_write(to, bytes, 0755, &err) == OK)
        return 0;
    print_message("%s\n", err.text);
    return 1;
}

static int other_ways(const char *self)
{
    static const char *const user[] = { "./test_box", "--once", NULL };
    own_arena a = { 0 };
    struct err err = { 0 };
    const char *dir = NULL;
    const char *box = arena_fmt(&a, "%s/container", dirname_of(&a, self));
    if (dir_temp(&a, "/tmp", "ca-box", &dir, &err) != OK || chmod(dir, 0755) != 0 ||
        copy(&a, self, path_join(&a, dir, "test_box")) != 0 ||
        copy(&a, box, path_join(&a, dir, "container")) != 0)
        return 1;
    box = path_join(&a, dir, "container");
    const char *in_container[] = { box, "./test_box", "--once", NULL };
    const char *no_landlock[] = { box, "--no-landlock", "./test_box", "--once", NULL };
    int bad = again(dir, in_container) | again(dir, no_landlock);
    if (geteuid() == 0 && proc_find(&a, "setpriv") != NULL) {
#define AS_USER "setpriv", "--reuid=1000", "--regid=1000", "--clear-groups"
        const char *plain[] = { AS_USER, user[0], user[1], NULL };
        const char *both[] = { AS_USER, box, user[0], user[1], NULL };
        bad |= again(dir, plain) | again(dir, both);
    }
    return dir_remove(dir, &err) != OK || bad;
}

static int probe_main(const char *name)
{
    for (size_t i = 0; i < COUNT(probes); i++)
        if (strcmp(probes[i].name, name) == 0)
            return probes[i].run();
    return 99;
}

/* Neither namespaces nor Landlock: refused, unless one says that the machine may be thrown away. */
static int without_walls(void)
{
    struct err err = { 0 }, again_err = { 0 };
    struct box_facts facts;
    box_choose(BOX_BEST);
    int bad = box_probe(&facts, &err) != ERR_MISSING || strstr(err.hint, "disposable") == NULL ||
              strstr(err.text, "Landlock") == NULL;
    box_choose(BOX_DISPOSABLE);
    bad |= box_probe(&facts, &again_err) != OK || facts.rung != 3 ||
           strstr(facts.detail, "no wall") == NULL;
    print_message("without namespaces and Landlock: %s\n  hint: %s\n  disposable: %s\n", err.text,
                  err.hint, bad ? again_err.text : facts.detail);
    return bad;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(walls),
        cmocka_unit_test(seen_from_inside),
        cmocka_unit_test(ends),
        cmocka_unit_test(limits),
        cmocka_unit_test(tmp_is_bounded),
        cmocka_unit_test(leaves_nothing),
        cmocka_unit_test(frozen_in_workspace),
        cmocka_unit_test(output_is_cut),
        cmocka_unit_test(cannot_start),
        cmocka_unit_test(held_processors),
        cmocka_unit_test(channel),
        cmocka_unit_test(pausing),
        cmocka_unit_test(after_the_end),
        cmocka_unit_test(dies_with_owner),
    };
    if (argc == 5 && strcmp(argv[1], "--probe") == 0) {
        rung = argv[3][0] - '0';
        lair = argv[4];
        _exit(probe_main(argv[2])); /* a leak checker at exit would want ptrace */
    }
    own_mem char *self = realpath("/proc/self/exe", NULL);
    own_arena a = { 0 };
    struct err err = { 0 };
    struct box_facts facts = { 0 };
    mounts[0].from = self;
    box_choose(BOX_DISPOSABLE);
    if (self == NULL || box_probe(&facts, &err) != OK || make_lair(&a) != 0) {
        print_message("no box here: %s\n", err.text);
        return 1;
    }
    rung = facts.rung;
    print_message("uid %d, rung %d: %s\n", (int)getuid(), rung, facts.detail);
    int failed = rung == 3 ? without_walls() : cmocka_run_group_tests(tests, NULL, NULL);
    failed += lair_is_untouched(&a);
    bool once = argc == 2 && strcmp(argv[1], "--once") == 0;
    return failed + (once ? 0 : other_ways(self));
}
