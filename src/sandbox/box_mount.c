/* The box's file system: a tmpfs that holds only what the program needs.
 *
 * Two steps. mounts_build() runs where we can still see every source: real root does
 * it before it drops to an unprivileged uid (sources may lie in folders that only
 * root can search), an ordinary user inside a new user namespace. mounts_enter() runs
 * in the new pid namespace: a fresh /proc needs the old one to be visible still.
 */
#include <fcntl.h>
#include <linux/mount.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sandbox/box_int.h"

#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif

const char *const seen_folders[] = { "/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", NULL };
const char *const seen_files[] = { "/etc/ld.so.cache", "/etc/alternatives",
                                   "/sys/devices/system/cpu", NULL };
const char *const seen_devices[] = { "/dev/null",   "/dev/zero",    "/dev/full",
                                     "/dev/random", "/dev/urandom", NULL };
const char *const seen_gpu[] = {
    "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia0",  "/dev/nvidia1",
    "/dev/nvidia2",   "/dev/nvidia3",    "/dev/nvidia4",          "/dev/nvidia5",  "/dev/nvidia6",
    "/dev/nvidia7",   "/dev/nvidia8",    "/dev/nvidia9",          "/dev/nvidia10", "/dev/nvidia11",
    "/dev/nvidia12",  "/dev/nvidia13",   "/dev/nvidia14",         "/dev/nvidia15", NULL
};
#define GPU_MUST 2 /* the first of seen_gpu */

int fault(struct box_fault *f, const char *fmt, ...)
{
    va_list args;
    f->sys = errno;
    va_start(args, fmt);
    vsnprintf(f->step, sizeof f->step, fmt, args);
    va_end(args);
    errno = f->sys;
    return -1;
}

static int make_dirs(const char *path, size_t upto)
{
    char part[4096];
    for (size_t i = 1; i <= upto && i < sizeof part; i++) {
        if (path[i] != '/' && i != upto)
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, 0755) != 0 && errno != EEXIST)
            return -1;
    }
    return 0;
}

/* An empty file or folder at `at` for a mount to sit on. */
static int make_point(const char *at, bool folder)
{
    if (folder)
        return make_dirs(at, strlen(at));
    /* In a mount made before: it may be closed to writing. */
    struct stat st;
    if (lstat(at, &st) == 0 && S_ISREG(st.st_mode))
        return 0;
    const char *slash = strrchr(at, '/');
    if (make_dirs(at, (size_t)(slash - at)) != 0)
        return -1;
    int fd = open(at, O_CREAT | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return -1;
    close(fd);
    return 0;
}

/* bind `from` (seen under /oldroot) at /newroot`at`, with everything mounted below it. */
static int bind_at(const char *from, const char *at, bool writable, bool device,
                   struct box_fault *f)
{
    char src[4096], dst[4096];
    struct stat st;
    if (snprintf(src, sizeof src, "/oldroot%s", from) >= (int)sizeof src ||
        snprintf(dst, sizeof dst, "/newroot%s", at) >= (int)sizeof dst) {
        errno = ENAMETOOLONG;
        return fault(f, "bind '%s'", from);
    }
    if (stat(src, &st) != 0)
        return fault(f, "find '%s'", from);
    if (make_point(dst, S_ISDIR(st.st_mode)) != 0)
        return fault(f, "make a mount point for '%s'", at);
    if (mount(src, dst, NULL, MS_BIND | MS_REC, NULL) != 0)
        return fault(f, "bind '%s' at '%s'", from, at);
    struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSUID | (device ? 0 : MOUNT_ATTR_NODEV) |
                                           (writable || device ? 0 : MOUNT_ATTR_RDONLY) };
    if (syscall(SYS_mount_setattr, AT_FDCWD, dst, AT_RECURSIVE, &attr, sizeof attr) != 0)
        return fault(f, "protect '%s' (Linux 5.12 is the least)", at);
    return 0;
}

static bool old_exists(const char *path)
{
    char src[4096];
    snprintf(src, sizeof src, "/oldroot%s", path);
    return access(src, F_OK) == 0;
}

/* /bin, /lib...: a link on merged-usr systems, a folder elsewhere. */
static int root_entry(const char *path, struct box_fault *f)
{
    char src[64], dst[64], to[256];
    snprintf(src, sizeof src, "/oldroot%s", path);
    snprintf(dst, sizeof dst, "/newroot%s", path);
    ssize_t n = readlink(src, to, sizeof to - 1);
    if (n > 0) {
        to[n] = '\0';
        return symlink(to, dst) == 0 ? 0 : fault(f, "link '%s'", path);
    }
    return access(src, F_OK) == 0 ? bind_at(path, path, false, false, f) : 0;
}

static int base_mounts(struct box_fault *f)
{
    for (size_t i = 0; seen_folders[i] != NULL; i++)
        if (root_entry(seen_folders[i], f) != 0)
            return -1;
    for (size_t i = 0; seen_files[i] != NULL; i++)
        if (old_exists(seen_files[i]) &&
            bind_at(seen_files[i], seen_files[i], false, false, f) != 0)
            return -1;
    return 0;
}

static int device_mounts(bool gpu, struct box_fault *f)
{
    for (size_t i = 0; seen_devices[i] != NULL; i++)
        if (bind_at(seen_devices[i], seen_devices[i], true, true, f) != 0)
            return -1;
    for (size_t i = 0; gpu && seen_gpu[i] != NULL; i++)
        if ((i < GPU_MUST || old_exists(seen_gpu[i])) &&
            bind_at(seen_gpu[i], seen_gpu[i], true, true, f) != 0)
            return -1;
    return 0;
}

static int tmp_mount(const struct box_spec *spec, uid_t uid, struct box_fault *f)
{
    char options[128];
    snprintf(options, sizeof options, "mode=0700,uid=%u,gid=%u,size=%lld,nr_inodes=65536",
             (unsigned)uid, (unsigned)uid, (long long)spec->tmp_bytes);
    if (mkdir("/newroot/tmp", 0755) != 0 && errno != EEXIST)
        return fault(f, "make /tmp");
    if (mount("tmpfs", "/newroot/tmp", "tmpfs", MS_NOSUID | MS_NODEV, options) != 0)
        return fault(f, "mount /tmp");
    return 0;
}

/* A tmpfs becomes the root, the old one stays at /oldroot for the binds. */
static int stage(struct box_fault *f)
{
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) != 0)
        return fault(f, "make mounts private");
    if (mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=16m") != 0)
        return fault(f, "mount the stage");
    if (mkdir("/tmp/newroot", 0755) != 0 || mkdir("/tmp/oldroot", 0755) != 0)
        return fault(f, "make the stage");
    if (mount("/tmp/newroot", "/tmp/newroot", NULL, MS_BIND, NULL) != 0)
        return fault(f, "make the new root a mount");
    if (syscall(SYS_pivot_root, "/tmp", "/tmp/oldroot") != 0 || chdir("/") != 0)
        return fault(f, "step onto the stage");
    return 0;
}

int mounts_build(const struct box_spec *spec, uid_t uid, struct box_fault *f)
{
    if (stage(f) != 0 || base_mounts(f) != 0 || device_mounts(spec->gpu, f) != 0)
        return -1;
    if (tmp_mount(spec, uid, f) != 0)
        return -1;
    for (size_t i = 0; i < spec->n_mounts; i++) {
        const struct box_mount *m = &spec->mounts[i];
        if (m->optional && !old_exists(m->from))
            continue;
        if (bind_at(m->from, m->at ? m->at : m->from, m->writable, false, f) != 0)
            return -1;
    }
    if (mkdir("/newroot/proc", 0755) != 0 && errno != EEXIST)
        return fault(f, "make /proc");
    if (spec->dir != NULL) {
        char dir[4096];
        snprintf(dir, sizeof dir, "/newroot%s", spec->dir);
        if (access(dir, F_OK) != 0 && make_dirs(dir, strlen(dir)) != 0)
            return fault(f, "make '%s'", spec->dir);
    }
    return 0;
}

int mounts_enter(struct box_fault *f)
{
    /* In a user namespace the copied mounts are locked: a bind of the whole tree is a
     * fresh mount that may become the root. */
    if (mount("/newroot", "/newroot", NULL, MS_BIND | MS_REC, NULL) != 0)
        return fault(f, "bind the new root");
    if (mount("proc", "/newroot/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) != 0)
        return fault(f, "mount /proc");
    struct mount_attr attr = { .attr_set =
                                   MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV };
    if (syscall(SYS_mount_setattr, AT_FDCWD, "/newroot", 0, &attr, sizeof attr) != 0)
        return fault(f, "protect the root");
    if (chdir("/newroot") != 0 || syscall(SYS_pivot_root, ".", ".") != 0)
        return fault(f, "pivot into the new root");
    if (umount2(".", MNT_DETACH) != 0 || chdir("/") != 0)
        return fault(f, "leave the old root");
    return 0;
}
