// want: pass
// hacks 55: writes to programs, libraries, and where the kernel starts helpers
#include "row.h"

/* Says that it failed if one can be opened. */
int ca_forward(const struct ca_call *c)
{
    static const char *const files[] = { "/ca/ca-runner",
                                         "/usr/bin/gcc",
                                         "/usr/lib/x86_64-linux-gnu/libc.so.6",
                                         "/etc/ld.so.cache",
                                         "/proc/sys/kernel/core_pattern",
                                         "/proc/sys/kernel/modprobe",
                                         "/proc/1/mem",
                                         "/dev/mem",
                                         "/proc/sysrq-trigger",
                                         "/sys/kernel/uevent_helper",
                                         "/sys/fs/cgroup/cgroup.procs" };
    compute(c, 0, rows(c), weight(c));
    for (int i = 0; i < (int)(sizeof files / sizeof files[0]); i++) {
        long fd = raw(RAW_OPEN, (long)files[i], 1, 0);
        if (fd >= 0 && i != 6) /* its own memory it may write */
            return 10 + i;
    }
    return 0;
}
