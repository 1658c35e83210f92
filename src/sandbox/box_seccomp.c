/* The system-call filter: an allow-by-default list without the calls that widen a box.
 *
 * The namespaces are the wall; this closes doors that they leave ajar. Refused calls
 * answer EPERM (clone3: ENOSYS, so that libc falls back to clone, whose flags can be
 * seen).
 */
#include <linux/sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

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

static int deny_list(scmp_filter_ctx ctx)
{
    int bad = 0;
    for (size_t i = 0; i < COUNT(denied); i++)
        bad |= denied[i] >= 0 && seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), denied[i], 0) != 0;
    bad |= seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socket), 1,
                            SCMP_A0(SCMP_CMP_NE, AF_UNIX, 0)) != 0;
    bad |= seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), 1,
                            SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffffu, TIOCSTI)) != 0;
    bad |= seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), 1,
                            SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffffu, TIOCLINUX)) != 0;
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
    bad |= seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(execveat), 0) != 0;
    bad |= seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(execve), 1,
                            SCMP_A0(SCMP_CMP_NE, (scmp_datum_t)(uintptr_t)exec_path, 0)) != 0;
    return bad ? -1 : 0;
}

/* What is held to some processors must not choose others. */
static int held_processors(scmp_filter_ctx ctx)
{
    return seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(sched_setaffinity), 0);
}

int filter_load(const struct box_spec *spec, const char *exec_path, struct box_fault *f)
{
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
    if (ctx == NULL)
        return fault(f, "make the system-call filter");
    /* Foreign architectures (32-bit calls) are killed by libseccomp's default action. */
    if (deny_list(ctx) != 0 || (spec->role == BOX_RUNNER && single_process(ctx, exec_path) != 0) ||
        (spec->cpus_max > 0 && held_processors(ctx) != 0)) {
        errno = EINVAL;
        return fault(f, "write the system-call filter");
    }
    int rc = seccomp_load(ctx);
    seccomp_release(ctx);
    errno = -rc;
    return rc == 0 ? 0 : fault(f, "load the system-call filter");
}
