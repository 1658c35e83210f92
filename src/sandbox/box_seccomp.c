/* The system-call filter: an allow-by-default list without the calls that widen a box.
 *
 * The namespaces are the wall; this closes doors that they leave ajar. Below rung 1 it
 * is a wall itself, against all that Landlock does not know: other processes, sockets,
 * System V IPC, owners and modes of files. Refused calls answer EPERM (clone3: ENOSYS, so
 * that libc falls back to clone, whose flags can be seen).
 */
#include <fcntl.h>
#include <linux/sched.h>
#include <linux/sockios.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sandbox/box_int.h"

static const int denied[] = {
    SCMP_SYS(ptrace),
    SCMP_SYS(process_vm_readv),
    SCMP_SYS(process_vm_writev),
    SCMP_SYS(process_madvise),
    SCMP_SYS(pidfd_getfd),
    SCMP_SYS(kcmp),
    SCMP_SYS(mount),
    SCMP_SYS(umount2),
    SCMP_SYS(pivot_root),
    SCMP_SYS(chroot),
    SCMP_SYS(move_mount),
    SCMP_SYS(open_tree),
    SCMP_SYS(fsopen),
    SCMP_SYS(fsconfig),
    SCMP_SYS(fsmount),
    SCMP_SYS(fspick),
    SCMP_SYS(mount_setattr),
    SCMP_SYS(setns),
    SCMP_SYS(unshare),
    SCMP_SYS(mknod),
    SCMP_SYS(mknodat),
    SCMP_SYS(name_to_handle_at),
    SCMP_SYS(open_by_handle_at),
    SCMP_SYS(bpf),
    SCMP_SYS(perf_event_open),
    SCMP_SYS(userfaultfd),
    SCMP_SYS(io_uring_setup),
    SCMP_SYS(io_uring_enter),
    SCMP_SYS(io_uring_register),
    SCMP_SYS(keyctl),
    SCMP_SYS(add_key),
    SCMP_SYS(request_key),
    SCMP_SYS(kexec_load),
    SCMP_SYS(kexec_file_load),
    SCMP_SYS(init_module),
    SCMP_SYS(finit_module),
    SCMP_SYS(delete_module),
    SCMP_SYS(reboot),
    SCMP_SYS(swapon),
    SCMP_SYS(swapoff),
    SCMP_SYS(acct),
    SCMP_SYS(quotactl),
    SCMP_SYS(settimeofday),
    SCMP_SYS(clock_settime),
    SCMP_SYS(clock_adjtime),
    SCMP_SYS(adjtimex),
    SCMP_SYS(sethostname),
    SCMP_SYS(setdomainname),
    SCMP_SYS(syslog),
    SCMP_SYS(iopl),
    SCMP_SYS(ioperm),
    SCMP_SYS(personality),
    SCMP_SYS(lookup_dcookie),
    SCMP_SYS(fanotify_init),
    SCMP_SYS(vhangup),
    SCMP_SYS(uselib),
    SCMP_SYS(ustat),
    SCMP_SYS(sysfs),
    SCMP_SYS(nfsservctl),
    SCMP_SYS(modify_ldt),
};

#define NEW_NAMESPACES                                                                         \
    (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWUTS | \
     CLONE_NEWCGROUP)

static int never(scmp_filter_ctx ctx, uint32_t answer, int call, unsigned arg, scmp_datum_t mask,
                 scmp_datum_t value)
{
    return seccomp_rule_add(ctx, SCMP_ACT_ERRNO(answer), call, 1,
                            SCMP_CMP(arg, SCMP_CMP_MASKED_EQ, mask, value)) != 0;
}

#define LOW 0xffffffffu /* of an argument: what the kernel looks at */

static int deny_list(scmp_filter_ctx ctx)
{
    int bad = 0;
    for (size_t i = 0; i < COUNT(denied); i++)
        bad |= denied[i] >= 0 && seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), denied[i], 0) != 0;
    bad |= seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socket), 1,
                            SCMP_A0(SCMP_CMP_NE, AF_UNIX, 0)) != 0;
    bad |= never(ctx, EPERM, SCMP_SYS(ioctl), 1, LOW, TIOCSTI);
    bad |= never(ctx, EPERM, SCMP_SYS(ioctl), 1, LOW, TIOCLINUX);
    /* Its holder is told by a signal; who opens the file meanwhile waits, the examiner, too. */
    bad |= never(ctx, EPERM, SCMP_SYS(fcntl), 1, LOW, F_SETLEASE);
    bad |= seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0) != 0;
    for (unsigned long bit = 1; bit != 0 && bit <= NEW_NAMESPACES; bit <<= 1)
        if (NEW_NAMESPACES & bit)
            bad |= seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                                    SCMP_A0(SCMP_CMP_MASKED_EQ, bit, bit)) != 0;
    return bad ? -1 : 0;
}

/* A runner has threads and no second process, and never becomes another program. */
static int single_process(scmp_filter_ctx ctx, const char *exec_path)
{
    int bad = 0;
    bad |= seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(fork), 0) != 0;
    bad |= seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(vfork), 0) != 0;
    bad |= seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                            SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0)) != 0;
    /* Whose caller waits where nothing can stop it. */
    bad |= never(ctx, EPERM, SCMP_SYS(clone), 0, CLONE_VFORK, CLONE_VFORK);
    bad |= seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(execveat), 0) != 0;
    bad |= seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(execve), 1,
                            SCMP_A0(SCMP_CMP_NE, (scmp_datum_t)(uintptr_t)exec_path, 0)) != 0;
    return bad ? -1 : 0;
}

/* Only with this value of the argument: all 64 bits are compared, so that what a kernel that looks
 * at fewer would take for it is refused, too. */
static int only(scmp_filter_ctx ctx, int call, unsigned arg, scmp_datum_t value)
{
    return seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), call, 1,
                            SCMP_CMP(arg, SCMP_CMP_NE, value, 0)) != 0;
}

/* Descriptors that send signals: to whom one names, or SIGCONT to a process that was stopped. With
 * O_ASYNC alone comes SIGIO, which wakes nobody. */
static int no_signals_from_files(scmp_filter_ctx ctx)
{
    static const scmp_datum_t controls[] = { F_SETOWN, 15 /* F_SETOWN_EX */, 10 /* F_SETSIG */ };
    int bad = 0;
    for (size_t i = 0; i < COUNT(controls); i++)
        bad |= never(ctx, EPERM, SCMP_SYS(fcntl), 1, LOW, controls[i]);
    return bad | never(ctx, EPERM, SCMP_SYS(ioctl), 1, LOW, FIOSETOWN) |
           never(ctx, EPERM, SCMP_SYS(ioctl), 1, LOW, SIOCSPGRP);
}

/* Timers fire in a stopped process, too: thousands of them slow down whoever is timed then. */
static int no_timers(scmp_filter_ctx ctx)
{
    static const int call[] = { SCMP_SYS(timer_create), SCMP_SYS(timerfd_create),
                                SCMP_SYS(setitimer) };
    int bad = 0;
    for (size_t i = 0; i < COUNT(call); i++)
        bad |= seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), call[i], 0) != 0;
    return bad ? -1 : 0;
}

/* What is held to some processors must not choose others. */
static int held_processors(scmp_filter_ctx ctx)
{
    return seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(sched_setaffinity), 0);
}

/* By number where libseccomp may be older than the call. */
#define NR_QUOTACTL_FD 443
#define NR_FCHMODAT2 452
#define NR_SETXATTRAT 463
#define NR_REMOVEXATTRAT 466
#define NR_OPEN_TREE_ATTR 467
#define NR_FILE_SETATTR 469

static const int denied_in_company[] = {
    SCMP_SYS(shmget),
    SCMP_SYS(shmat),
    SCMP_SYS(shmctl),
    SCMP_SYS(msgget),
    SCMP_SYS(msgsnd),
    SCMP_SYS(msgrcv),
    SCMP_SYS(msgctl),
    SCMP_SYS(semget),
    SCMP_SYS(semop),
    SCMP_SYS(semtimedop),
    SCMP_SYS(semctl),
    SCMP_SYS(mq_open),
    SCMP_SYS(mq_unlink),
    SCMP_SYS(chmod),
    SCMP_SYS(fchmod),
    SCMP_SYS(fchmodat),
    NR_FCHMODAT2,
    SCMP_SYS(chown),
    SCMP_SYS(fchown),
    SCMP_SYS(lchown),
    SCMP_SYS(fchownat),
    SCMP_SYS(utime),
    SCMP_SYS(utimes),
    SCMP_SYS(futimesat),
    SCMP_SYS(utimensat),
    SCMP_SYS(setxattr),
    SCMP_SYS(lsetxattr),
    SCMP_SYS(fsetxattr),
    NR_SETXATTRAT,
    SCMP_SYS(removexattr),
    SCMP_SYS(lremovexattr),
    SCMP_SYS(fremovexattr),
    NR_REMOVEXATTRAT,
    NR_FILE_SETATTR,
    NR_QUOTACTL_FD,
    NR_OPEN_TREE_ATTR,
    SCMP_SYS(inotify_add_watch),
    SCMP_SYS(migrate_pages),
    SCMP_SYS(move_pages),
    /* Signals by thread, or past the rules below. */
    SCMP_SYS(tkill),
    SCMP_SYS(pidfd_send_signal),
};

/* Signals, limits and priorities reach nobody but the caller's own process: the first process of
 * the box, the only one of a runner. */
static int keep_to_itself(scmp_filter_ctx ctx, bool held)
{
    const scmp_datum_t self = (scmp_datum_t)getpid();
    int bad = only(ctx, SCMP_SYS(kill), 0, self) | only(ctx, SCMP_SYS(tgkill), 0, self) |
              only(ctx, SCMP_SYS(rt_sigqueueinfo), 0, self) |
              only(ctx, SCMP_SYS(rt_tgsigqueueinfo), 0, self) |
              only(ctx, SCMP_SYS(prlimit64), 0, 0) | only(ctx, SCMP_SYS(setpriority), 0, 0) |
              only(ctx, SCMP_SYS(setpriority), 1, 0) | only(ctx, SCMP_SYS(ioprio_set), 0, 1) |
              only(ctx, SCMP_SYS(ioprio_set), 1, 0) | only(ctx, SCMP_SYS(sched_setparam), 0, 0) |
              only(ctx, SCMP_SYS(sched_setscheduler), 0, 0) |
              only(ctx, SCMP_SYS(sched_setattr), 0, 0);
    if (!held)
        bad |= only(ctx, SCMP_SYS(sched_setaffinity), 0, 0);
    return bad;
}

/* No socket of somebody else can be spoken to: not by connecting, and there are none that could
 * name a receiver with each message. libcuda looks for an MPS server and finds none. */
static int no_strangers(scmp_filter_ctx ctx)
{
    static const scmp_datum_t nameable[] = { SOCK_DGRAM, SOCK_RAW, SOCK_RDM };
    int bad = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOENT), SCMP_SYS(connect), 0) != 0;
    for (size_t i = 0; i < COUNT(nameable); i++)
        bad |= never(ctx, EAFNOSUPPORT, SCMP_SYS(socket), 1, 0xf, nameable[i]) |
               never(ctx, EAFNOSUPPORT, SCMP_SYS(socketpair), 1, 0xf, nameable[i]);
    return bad;
}

/* Below rung 1 there are others about. */
static int in_company(scmp_filter_ctx ctx, bool held)
{
    int bad = 0;
    for (size_t i = 0; i < COUNT(denied_in_company); i++)
        bad |= seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), denied_in_company[i], 0) != 0;
    return bad | keep_to_itself(ctx, held) | no_strangers(ctx);
}

int filter_load(const struct box_spec *spec, int rung, const char *exec_path, struct box_fault *f)
{
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
    if (ctx == NULL)
        return fault(f, "make the system-call filter");
    /* Foreign architectures (32-bit calls) are killed by libseccomp's default action. */
    if (deny_list(ctx) != 0 || (spec->role == BOX_RUNNER && single_process(ctx, exec_path) != 0) ||
        (spec->role == BOX_RUNNER && !spec->gpu && no_timers(ctx) != 0) ||
        (spec->cpus_max > 0 && held_processors(ctx) != 0) ||
        ((rung > 1 || spec->role == BOX_RUNNER) && no_signals_from_files(ctx) != 0) ||
        (rung > 1 && in_company(ctx, spec->cpus_max > 0) != 0)) {
        errno = EINVAL;
        return fault(f, "write the system-call filter");
    }
    int rc = seccomp_load(ctx);
    seccomp_release(ctx);
    errno = -rc;
    return rc == 0 ? 0 : fault(f, "load the system-call filter");
}
