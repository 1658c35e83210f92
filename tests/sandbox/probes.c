/* The attempts, each a function that runs inside; 0: the wall held. */
#include "probes.h"

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

int rung;
const char *lair;

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
    const unsigned long thread = CLONE_THREAD | CLONE_SIGHAND | CLONE_VM;
    return refused(fork(), EPERM) | refused(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0), EPERM) |
           refused(syscall(SYS_clone, thread | CLONE_VFORK, 0, 0, 0, 0), EPERM);
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

/* A stopped runner could be woken by them: SIGCONT when a file is touched. */
static int probe_signals_from_files(void)
{
    struct f_owner_ex owner = { F_OWNER_PID, getpid() };
    int me = getpid();
    return refused(fcntl(0, F_SETOWN, me), EPERM) | refused(fcntl(0, F_SETOWN_EX, &owner), EPERM) |
           refused(fcntl(0, F_SETSIG, SIGCONT), EPERM) | refused(ioctl(0, FIOSETOWN, &me), EPERM) |
           refused(ioctl(0, SIOCSPGRP, &me), EPERM);
}

/* A lease stalls whoever opens the file (45 s by default), and is announced by a signal. The file
 * is its own: another's would be refused without a filter. */
static int probe_leases(void)
{
    int fd = open("leased", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    return fd < 0 || refused(fcntl(fd, F_SETLEASE, F_WRLCK), EPERM);
}

/* They fire in a stopped process, too, and slow down whoever is timed meanwhile. */
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

static void *wake_up(void *unused)
{
    while (kill(getpid(), SIGCONT) == 0)
        continue;
    return unused;
}

static int probe_restless(void)
{
    pthread_t t;
    if (pthread_create(&t, NULL, wake_up, NULL) != 0 ||
        pthread_create(&t, NULL, wake_up, NULL) != 0)
        return 2;
    return probe_tick();
}

static int probe_deaf(void)
{
    if (write(3, ".", 1) == 1 && vfork() == 0)
        for (;;)
            poll(NULL, 0, 1000);
    return 1;
}

const struct probe probes[] = {
    { "network", probe_network, BOX_RUNNER, 0, false },
    { "network of a worker", probe_network, BOX_WORKER, 0, false },
    { "network of a builder", probe_network, BOX_BUILDER, 0, false },
    { "unshare", probe_unshare, BOX_RUNNER, 0, false },
    { "unshare of a builder", probe_unshare, BOX_BUILDER, 0, false },
    { "clone with a namespace", probe_clone_namespace, BOX_WORKER, 0, false },
    { "clone3", probe_clone3, BOX_RUNNER, 0, false },
    { "fork", probe_fork, BOX_RUNNER, 0, false },
    { "exec", probe_exec, BOX_RUNNER, 0, false },
    { "ptrace", probe_ptrace, BOX_WORKER, 0, false },
    { "mount", probe_mount, BOX_WORKER, 0, false },
    { "uid 0", probe_uid, BOX_WORKER, 0, false },
    { "doors of the kernel", probe_kernel_doors, BOX_RUNNER, 0, false },
    { "files of the kernel", probe_kernel_files, BOX_RUNNER, 0, false },
    { "files of the kernel, worker", probe_kernel_files, BOX_WORKER, 0, false },
    { "files of the kernel, builder", probe_kernel_files, BOX_BUILDER, 0, false },
    { "remount, setns, mknod", probe_remount, BOX_RUNNER, 0, false },
    { "remount, setns, mknod of a builder", probe_remount, BOX_BUILDER, 0, false },
    { "clocks", probe_clocks, BOX_RUNNER, 0, false },
    { "timers", probe_timers, BOX_RUNNER, 0, false },
    { "signals from descriptors", probe_signals_from_files, BOX_RUNNER, 0, false },
    { "leases", probe_leases, BOX_RUNNER, 0, false },
    { "leases, worker", probe_leases, BOX_WORKER, 0, false },
    { "leases, builder", probe_leases, BOX_BUILDER, 0, false },
    { "leases, workspace", probe_leases, BOX_WORKSPACE, 0, false },
    { "other processes", probe_others, BOX_RUNNER, 1, false },
    { "strangers", probe_strangers, BOX_RUNNER, 2, false },
    { "strangers, worker", probe_strangers, BOX_WORKER, 2, false },
    { "strangers, builder", probe_strangers, BOX_BUILDER, 2, false },
    { "files", probe_files, BOX_RUNNER, 0, false },
    { "files, worker", probe_files, BOX_WORKER, 0, false },
    { "files, builder", probe_files, BOX_BUILDER, 0, false },
    { "sockets", probe_connect, BOX_RUNNER, 0, false },
    { "sockets, worker", probe_connect, BOX_WORKER, 0, false },
    { "keys of the terminal", probe_terminal, BOX_RUNNER, 0, false },
    { "a thread", probe_thread, BOX_RUNNER, 0, false },
    { "size of /tmp", probe_tmp_size, BOX_RUNNER, 1, false },
    { "network of a workspace", probe_network, BOX_WORKSPACE, 0, false },
    { "unshare of a workspace", probe_unshare, BOX_WORKSPACE, 0, false },
    { "ptrace of a workspace", probe_ptrace, BOX_WORKSPACE, 0, false },
    { "remount, setns, mknod of a workspace", probe_remount, BOX_WORKSPACE, 0, false },
    { "files of the kernel, workspace", probe_kernel_files, BOX_WORKSPACE, 0, false },
    { "strangers, workspace", probe_strangers, BOX_WORKSPACE, 2, false },
    { "files, workspace", probe_files, BOX_WORKSPACE, 0, false },
    { "descriptors", probe_descriptors, BOX_RUNNER, 0, true },
    { "processors", probe_processors, BOX_RUNNER, 0, true },
    { "channel", probe_channel, BOX_RUNNER, 0, true },
    { "memory", probe_memory, BOX_RUNNER, 0, true },
    { "file size", probe_file_size, BOX_RUNNER, 0, true },
    { "flood of /tmp", probe_tmp_flood, BOX_RUNNER, 0, true },
    { "spin", probe_spin, BOX_RUNNER, 0, true },
    { "tick", probe_tick, BOX_RUNNER, 0, true },
    { "restless", probe_restless, BOX_RUNNER, 0, true },
    { "deaf", probe_deaf, BOX_BUILDER, 0, true },
};
const size_t n_probes = COUNT(probes);

int probe_main(const char *name)
{
    for (size_t i = 0; i < COUNT(probes); i++)
        if (strcmp(probes[i].name, name) == 0)
            return probes[i].run();
    return 99;
}
