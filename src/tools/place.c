#include "tools/place.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/own.h"

#define PATH_BYTES_MAX 1024
#define PARTS_MAX 64

int open_below(int dir_fd, const char *rel, int flags, bool links)
{
    struct open_how how = { .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
                            .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS |
                                       (links ? 0 : RESOLVE_NO_SYMLINKS) };
    long fd;
    do
        fd = syscall(SYS_openat2, dir_fd, rel, &how, sizeof how);
    while (fd < 0 && (errno == EINTR || errno == EAGAIN));
    return (int)fd;
}

/* path without the folder's name at its start; false when it does not lie there. */
static bool strip_folder(struct str *path, const char *folder)
{
    struct str head = str_from(folder);
    if (!str_starts(*path, head) || (path->len > head.len && path->ptr[head.len] != '/'))
        return false;
    *path = str_drop(*path, head.len);
    return true;
}

static enum err_code outside(const struct folder folders[FOLDERS], struct str path, struct err *err)
{
    err_raise(err, ERR_USAGE, "'%.*s' lies outside the workspace",
              (int)(path.len < 200 ? path.len : 200), path.ptr);
    return err_hint(err, "paths are relative to %s, or begin with it",
                    folders[FOLDER_WORKSPACE].inside);
}

/* "a/./b//../c" -> "a/c". */
static enum err_code normal(const struct folder folders[FOLDERS], struct arena *a, struct str whole,
                            struct str path, const char **ret, struct err *err)
{
    struct str part[PARTS_MAX], one;
    size_t n = 0;
    while (str_cut(&path, '/', &one)) {
        if (one.len == 0 || str_eq(one, S(".")))
            continue;
        bool up = str_eq(one, S(".."));
        if (up && n == 0)
            return outside(folders, whole, err);
        if (!up && n == PARTS_MAX)
            return err_raise(err, ERR_USAGE, "the path has more than %d parts", PARTS_MAX);
        if (one.len > 255)
            return err_raise(err, ERR_USAGE, "the path has a part of more than 255 bytes");
        if (up)
            n--;
        else
            part[n++] = one;
    }
    struct buf b = { .arena = a, .max = PATH_BYTES_MAX };
    for (size_t i = 0; i < n; i++)
        buf_addf(&b, "%s%.*s", i == 0 ? "" : "/", STR_FMT(part[i]));
    *ret = n == 0 ? "." : b.ptr;
    return OK;
}

enum err_code place_find(const struct folder folders[FOLDERS], struct arena *a, struct str path,
                         struct place *ret, struct err *err)
{
    struct str rest = path;
    const struct folder *f = &folders[FOLDER_WORKSPACE];
    if (path.len == 0 || path.len > PATH_BYTES_MAX || memchr(path.ptr, '\0', path.len) != NULL)
        return err_raise(err, ERR_USAGE, "a path has 1 to %d bytes, none of them NUL",
                         PATH_BYTES_MAX);
    if (path.ptr[0] == '/') {
        size_t i = 0;
        for (; i < FOLDERS; i++)
            if (strip_folder(&rest, folders[i].inside) || strip_folder(&rest, folders[i].outside))
                break;
        if (i == FOLDERS)
            return outside(folders, path, err);
        f = &folders[i];
    }
    const char *rel = NULL;
    if (normal(folders, a, path, rest, &rel, err) != OK)
        return err->code;
    *ret = (struct place){ f, rel, rel };
    if (f != &folders[FOLDER_WORKSPACE])
        ret->name = arena_fmt(a, "%s/%s", f->inside, rel);
    return OK;
}

static enum err_code refused(const struct place *p, struct err *err)
{
    int sys = errno;
    if (sys == EXDEV || sys == ELOOP) {
        err_raise(err, ERR_USAGE,
                  "'%s': a symbolic link leads out of the workspace, or back to itself", p->name);
        return err_hint(err,
                        "name the file itself; absolute links are not followed, relative ones are");
    }
    if (sys == ENOTDIR)
        return err_raise(err, ERR_USAGE, "'%s': a part of the path is a file, not a folder",
                         p->name);
    if (sys == EACCES || sys == EPERM)
        return err_raise(err, ERR_USAGE, "'%s': permission denied", p->name);
    if (sys == ENAMETOOLONG)
        return err_raise(err, ERR_USAGE, "'%s': the name is too long", p->name);
    errno = sys;
    return err_sys(err, "open '%s'", p->name);
}

enum err_code place_look(const struct place *p, struct stat *ret, struct err *err)
{
    struct stat st = { 0 };
    own_fd fd = open_below(p->folder->fd, p->rel, O_PATH, true);
    if (fd < 0 && errno != ENOENT)
        return refused(p, err);
    if (fd >= 0 && fstat(fd, &st) != 0)
        return refused(p, err);
    *ret = st;
    return OK;
}

static enum err_code not_a_file(const struct place *p, mode_t mode, struct err *err)
{
    if (S_ISDIR(mode)) {
        err_raise(err, ERR_USAGE, "'%s' is a folder", p->name);
        return err_hint(err, "Glob with the pattern \"*\" in it says what it holds");
    }
    return err_raise(err, ERR_USAGE, "'%s' is a %s, not a file", p->name,
                     S_ISFIFO(mode)                   ? "pipe"
                     : S_ISSOCK(mode)                 ? "socket"
                     : S_ISCHR(mode) || S_ISBLK(mode) ? "device"
                                                      : "link");
}

enum err_code place_open(const struct place *p, int *ret_fd, struct stat *ret_st, struct err *err)
{
    struct stat st;
    if (place_look(p, &st, err) != OK)
        return err->code;
    if (st.st_mode == 0)
        return err_raise(err, ERR_USAGE, "there is no '%s'", p->name);
    if (!S_ISREG(st.st_mode))
        return not_a_file(p, st.st_mode, err);
    /* It may have become something else meanwhile: no waiting for a pipe's writer. */
    own_fd fd = open_below(p->folder->fd, p->rel, O_RDONLY | O_NONBLOCK | O_NOCTTY, true);
    if (fd < 0 || fstat(fd, &st) != 0)
        return refused(p, err);
    if (!S_ISREG(st.st_mode))
        return not_a_file(p, st.st_mode, err);
    *ret_fd = own_fd_take(&fd);
    *ret_st = st;
    return OK;
}

enum err_code place_read(const struct place *p, struct arena *a, struct str *ret,
                         struct stat *ret_st, struct err *err)
{
    own_fd fd = -1;
    struct stat st;
    if (place_open(p, &fd, &st, err) != OK)
        return err->code;
    if (st.st_size > (off_t)PLACE_FILE_MAX) {
        err_raise(err, ERR_LIMIT, "'%s' has %lld bytes, the most is %zu", p->name,
                  (long long)st.st_size, PLACE_FILE_MAX);
        return err_hint(err, "look at parts of it with Bash: head, tail, sed -n, grep");
    }
    size_t room = (size_t)st.st_size + 1, len = 0; /* as large as it was; what grows is cut */
    char *bytes = arena_new(a, char, room);
    while (len < room - 1) {
        ssize_t n = read(fd, bytes + len, room - 1 - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(err, "read '%s'", p->name);
        if (n == 0)
            break;
        len += (size_t)n;
    }
    *ret = (struct str){ bytes, len };
    *ret_st = st;
    return OK;
}

/* The folder that `rel` lies in, made where it is not there; *ret_last: the name in it. */
static int parent_make(const struct place *p, struct arena *a, const struct stat *root,
                       const char **ret_last)
{
    struct str rest = str_from(p->rel), part;
    own_fd at = fcntl(p->folder->fd, F_DUPFD_CLOEXEC, 0);
    while (at >= 0 && str_cut(&rest, '/', &part)) {
        const char *name = str_z(a, part);
        if (rest.len == 0) {
            *ret_last = name;
            break;
        }
        int next = open_below(at, name, O_PATH | O_DIRECTORY, false);
        if (next < 0 && errno == ENOENT && mkdirat(at, name, 0755) == 0) {
            if (geteuid() == 0 &&
                fchownat(at, name, root->st_uid, root->st_gid, AT_SYMLINK_NOFOLLOW) != 0)
                return -1;
            next = open_below(at, name, O_PATH | O_DIRECTORY, false);
        }
        own_fd_drop(&at);
        at = next;
    }
    return own_fd_take(&at);
}

static int put(int fd, struct str bytes, mode_t mode, const struct stat *root)
{
    while (bytes.len > 0) {
        ssize_t n = write(fd, bytes.ptr, bytes.len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        bytes = str_drop(bytes, (size_t)n);
    }
    if (geteuid() == 0 && fchown(fd, root->st_uid, root->st_gid) != 0)
        return -1;
    return fchmod(fd, mode);
}

enum err_code place_write(const struct place *p, struct str bytes, mode_t mode, struct err *err)
{
    own_arena tmp = { 0 };
    struct stat root, there;
    const char *name = NULL;
    uint64_t serial = 0;
    if (fstat(p->folder->fd, &root) != 0 || getrandom(&serial, sizeof serial, 0) != sizeof serial)
        return err_sys(err, "write '%s'", p->name);
    own_fd dir = parent_make(p, &tmp, &root, &name);
    if (dir < 0 || name == NULL)
        return refused(p, err);
    if (fstatat(dir, name, &there, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(there.st_mode))
        return not_a_file(p, there.st_mode, err);
    const char *part = arena_fmt(&tmp, ".part-%016llx", (unsigned long long)serial);
    own_fd fd = openat(dir, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return refused(p, err);
    if (put(fd, bytes, mode, &root) != 0 || renameat(dir, part, dir, name) != 0) {
        err_sys(err, "write '%s'", p->name);
        unlinkat(dir, part, 0);
        return err->code;
    }
    return OK;
}
