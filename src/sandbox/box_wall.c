/* The wall of rung 2: Landlock lets a process open nothing but what it was told before.
 *
 * https://docs.kernel.org/userspace-api/landlock.html. The constants are written out: the
 * headers of older systems lack those of newer kernels.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/own.h"
#include "sandbox/box_int.h"

#define EXECUTE (1ull << 0)
#define WRITE_FILE (1ull << 1)
#define READ_FILE (1ull << 2)
#define READ_DIR (1ull << 3)
#define REMOVE_AND_MAKE (((1ull << 13) - 1) & ~((1ull << 4) - 1)) /* bits 4 to 12 */
#define MAKE_DEVICE (1ull << 6 | 1ull << 11)
#define REFER (1ull << 13)
#define TRUNCATE (1ull << 14)
#define IOCTL_DEV (1ull << 15)
#define SCOPE_SOCKET_AND_SIGNAL 3ull
#define RULE_PATH_BENEATH 1
#define ASK_VERSION 1u

#define LOOK (READ_FILE | READ_DIR | EXECUTE)
#define OF_A_FILE (EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV)

struct ruleset_attr {
    uint64_t fs, net, scoped;
};

struct path_attr {
    uint64_t allowed;
    int32_t fd;
} __attribute__((packed));

struct wall {
    int fd;
    uint64_t handled;
};

int wall_abi(void)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, ASK_VERSION);
    return abi > 0 ? (int)abi : 0;
}

static uint64_t handled_by(int abi)
{
    uint64_t all = EXECUTE | WRITE_FILE | READ_FILE | READ_DIR | REMOVE_AND_MAKE;
    if (abi >= 2)
        all |= REFER;
    if (abi >= 3)
        all |= TRUNCATE;
    if (abi >= 5)
        all |= IOCTL_DEV;
    return all;
}

static int allow(const struct wall *w, const char *path, uint64_t rights, struct box_fault *f)
{
    struct stat st;
    own_fd fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0)
        return fault(f, "reach '%s'", path);
    if (!S_ISDIR(st.st_mode))
        rights &= OF_A_FILE;
    struct path_attr rule = { rights & w->handled, fd };
    if (syscall(SYS_landlock_add_rule, w->fd, RULE_PATH_BENEATH, &rule, 0) != 0)
        return fault(f, "let '%s' through the wall", path);
    return 0;
}

static int allow_all(const struct wall *w, const char *const *paths, uint64_t rights,
                     struct box_fault *f)
{
    for (size_t i = 0; paths[i] != NULL; i++)
        if (access(paths[i], F_OK) == 0 && allow(w, paths[i], rights, f) != 0)
            return -1;
    return 0;
}

/* What /proc holds beside processes, and of these our own: threads write their names there. */
static int allow_proc(const struct wall *w, struct box_fault *f)
{
    static const char *const machine[] = { "/proc/cpuinfo",
                                           "/proc/meminfo",
                                           "/proc/stat",
                                           "/proc/version",
                                           "/proc/loadavg",
                                           "/proc/uptime",
                                           "/proc/devices",
                                           "/proc/driver",
                                           "/proc/filesystems",
                                           "/proc/sys",
                                           NULL };
    char self[32];
    snprintf(self, sizeof self, "/proc/%d", (int)getpid());
    if (allow(w, self, READ_FILE | READ_DIR | WRITE_FILE | TRUNCATE, f) != 0)
        return -1;
    return allow_all(w, machine, READ_FILE | READ_DIR, f);
}

static int allow_mounts(const struct wall *w, const struct box_spec *spec, struct box_fault *f)
{
    const uint64_t own = LOOK | WRITE_FILE | TRUNCATE | REFER | (REMOVE_AND_MAKE & ~MAKE_DEVICE);
    for (size_t i = 0; i < spec->n_mounts; i++) {
        const struct box_mount *m = &spec->mounts[i];
        int rc = access(m->from, m->writable ? R_OK | W_OK : R_OK);
        if (rc != 0 && m->optional && errno == ENOENT)
            continue;
        if (rc != 0)
            return fault(f, "reach '%s'", m->from);
        if (allow(w, m->from, m->writable ? own : LOOK, f) != 0)
            return -1;
    }
    return 0;
}

int wall_raise(const struct box_spec *spec, struct box_fault *f)
{
    const uint64_t device = READ_FILE | WRITE_FILE | TRUNCATE | IOCTL_DEV;
    int abi = wall_abi();
    struct ruleset_attr attr = { .fs = handled_by(abi),
                                 .net = abi >= 4 ? 3 : 0, /* no TCP port, either */
                                 .scoped = abi >= 6 ? SCOPE_SOCKET_AND_SIGNAL : 0 };
    own_fd fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
    if (fd < 0)
        return fault(f, "build the wall");
    struct wall w = { fd, attr.fs };
    if (allow_all(&w, seen_folders, LOOK, f) != 0 || allow_all(&w, seen_files, LOOK, f) != 0 ||
        allow_all(&w, seen_devices, device, f) != 0 ||
        (spec->gpu && allow_all(&w, seen_gpu, device, f) != 0) || allow_proc(&w, f) != 0 ||
        allow_mounts(&w, spec, f) != 0)
        return -1;
    if (syscall(SYS_landlock_restrict_self, w.fd, 0) != 0)
        return fault(f, "raise the wall");
    return 0;
}
