#include "sys/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/own.h"

#define LINK_MAX_BYTES 4096

bool path_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

const char *path_join(struct arena *a, const char *dir, const char *name)
{
    size_t n = strlen(dir);
    return arena_fmt(a, "%s%s%s", dir, n > 0 && dir[n - 1] == '/' ? "" : "/", name);
}

const char *path_absolute(struct arena *a, const char *path)
{
    if (path[0] == '/')
        return path;
    own_mem char *cwd = getcwd(NULL, 0);
    return cwd ? path_join(a, cwd, path) : path;
}

enum err_code file_read(struct arena *a, const char *path, size_t max_bytes, struct str *ret,
                        struct err *err)
{
    own_fd fd =
        open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe without a writer would wait */
    if (fd < 0)
        return err_sys(err, "open '%s'", path);
    struct stat st;
    if (fstat(fd, &st) != 0)
        return err_sys(err, "stat '%s'", path);
    if (S_ISDIR(st.st_mode))
        return err_raise(err, ERR_FORMAT, "'%s' is a folder, wanted a file", path);
    if (!S_ISREG(st.st_mode))
        return err_raise(err, ERR_FORMAT, "'%s' is a pipe or a device, wanted a file", path);

    /* Files of /proc say 0 bytes: read to the end, under the limit. */
    struct buf b = { .arena = a, .max = max_bytes };
    char chunk[65536];
    for (;;) {
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(err, "read '%s'", path);
        if (n == 0)
            break;
        buf_add(&b, (struct str){ chunk, (size_t)n });
        if (b.full)
            return err_raise(err, ERR_LIMIT, "'%s' holds more than %zu bytes", path, max_bytes);
    }
    return buf_done(&b, ret, err);
}

static enum err_code write_all(int fd, struct str bytes, const char *path, struct err *err)
{
    while (bytes.len > 0) {
        ssize_t n = write(fd, bytes.ptr, bytes.len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(err, "write '%s'", path);
        bytes = str_drop(bytes, (size_t)n);
    }
    return OK;
}

enum err_code file_sealed(const char *path, int *ret_fd, struct err *err)
{
    own_fd from = open(path, O_RDONLY | O_CLOEXEC);
    own_fd to = memfd_create("copy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct stat st;
    if (from < 0 || to < 0 || fstat(from, &st) != 0)
        return err_sys(err, "open '%s'", path);
    for (off_t left = st.st_size; left > 0;) {
        ssize_t n = sendfile(to, from, NULL, (size_t)left);
        if (n <= 0)
            return err_sys(err, "copy '%s'", path);
        left -= n;
    }
    if (fcntl(to, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0)
        return err_sys(err, "seal a copy of '%s'", path);
    *ret_fd = own_fd_take(&to);
    return OK;
}

enum err_code file_write(const char *path, struct str bytes, mode_t mode, struct err *err)
{
    own_arena tmp = { 0 };
    char *part = (char *)(uintptr_t)arena_fmt(&tmp, "%s.part-XXXXXX", path);
    own_fd fd = mkostemp(part, O_CLOEXEC);
    if (fd < 0)
        return err_sys(err, "create '%s'", part);
    enum err_code code = write_all(fd, bytes, part, err);
    if (code == OK && (fchmod(fd, mode) != 0 || fsync(fd) != 0))
        code = err_sys(err, "finish '%s'", part);
    if (code == OK && rename(part, path) != 0)
        code = err_sys(err, "rename '%s' to '%s'", part, path);
    if (code != OK)
        unlink(part);
    return code;
}

enum err_code dir_make(const char *path, mode_t mode, struct err *err)
{
    own_arena tmp = { 0 };
    char *p = (char *)(uintptr_t)str_z(&tmp, str_from(path));
    for (char *at = p + 1;; at++) {
        if (*at != '/' && *at != '\0')
            continue;
        char saved = *at;
        *at = '\0';
        if (mkdir(p, mode) != 0 && errno != EEXIST)
            return err_sys(err, "make folder '%s'", p);
        *at = saved;
        if (saved == '\0')
            break;
    }
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
        return err_raise(err, ERR_SYSTEM, "'%s' is there and is no folder", path);
    return OK;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type, (void)at;
    return remove(path);
}

enum err_code dir_remove(const char *path, struct err *err)
{
    /* Physical walk on one file system: links are removed, never followed. */
    if (nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) != 0 && errno != ENOENT)
        return err_sys(err, "remove '%s'", path);
    return OK;
}

enum err_code dir_temp(struct arena *a, const char *parent, const char *prefix, const char **ret,
                       struct err *err)
{
    char *path = (char *)(uintptr_t)arena_fmt(a, "%s/%s-XXXXXX", parent, prefix);
    if (mkdtemp(path) == NULL)
        return err_sys(err, "make a folder in '%s'", parent);
    *ret = path;
    return OK;
}

static bool wanted(const struct dirent *e, int dir_fd, const char *const *endings)
{
    struct stat st;
    if (fstatat(dir_fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
        return false;
    if (endings == NULL)
        return true;
    for (; *endings != NULL; endings++)
        if (str_ends(str_from(e->d_name), str_from(*endings)))
            return true;
    return false;
}

static int by_text(const void *a, const void *b)
{
    const struct str *x = a, *y = b;
    return strcmp(x->ptr, y->ptr);
}

static void dir_drop(DIR **d)
{
    if (*d != NULL)
        closedir(*d);
}

enum err_code dir_list(struct arena *a, const char *path, const char *const *endings,
                       struct str **ret, size_t *ret_n, struct err *err)
{
    __attribute__((cleanup(dir_drop))) DIR *d = opendir(path);
    if (d == NULL)
        return err_sys(err, "open folder '%s'", path);
    size_t n = 0, cap = 16;
    struct str *all = arena_new(a, struct str, cap);
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        if (!wanted(e, dirfd(d), endings))
            continue;
        if (n == cap) {
            struct str *more = arena_new(a, struct str, cap * 2);
            memcpy(more, all, n * sizeof *all);
            all = more;
            cap *= 2;
        }
        all[n++] = str_copy(a, str_from(e->d_name));
    }
    qsort(all, n, sizeof *all, by_text);
    *ret = all;
    *ret_n = n;
    return OK;
}

mode_t dir_mode(void)
{
    return geteuid() == 0 ? 0711 : 0700;
}

enum err_code home_dir(struct arena *a, const char **ret, struct err *err)
{
    const char *own = getenv("CUDA_AGENT_HOME"), *xdg = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME"), *path;
    if (own != NULL && own[0] != '\0')
        path = path_absolute(a, own);
    else if (xdg != NULL && xdg[0] == '/')
        path = path_join(a, xdg, "cuda-agent");
    else if (home != NULL && home[0] == '/')
        path = path_join(a, home, ".cache/cuda-agent");
    else {
        err_raise(err, ERR_CONFIG, "no folder to keep builds and results in: HOME is not set");
        return err_hint(err, "set CUDA_AGENT_HOME to a folder on a disk with some GB free");
    }
    if (dir_make(path, dir_mode(), err) != OK) {
        err_within(err, "the folder of builds and results");
        return err_hint(err, "set CUDA_AGENT_HOME to a folder on a disk with some GB free");
    }
    if (access(path, W_OK | X_OK) != 0) {
        err_sys(err, "the folder of builds and results, '%s', cannot be written", path);
        return err_hint(err, "set CUDA_AGENT_HOME to a folder of your own");
    }
    *ret = path;
    return OK;
}

enum err_code program_dir(struct arena *a, const char **ret, struct err *err)
{
    char *path = arena_new(a, char, LINK_MAX_BYTES);
    ssize_t n = readlink("/proc/self/exe", path, LINK_MAX_BYTES - 1);
    if (n <= 0)
        return err_sys(err, "find the running program");
    char *slash = strrchr(path, '/');
    *(slash > path ? slash : path + 1) = '\0';
    *ret = path;
    return OK;
}

enum err_code share_dir(struct arena *a, const char **ret, struct err *err)
{
    const char *dir = NULL;
    if (program_dir(a, &dir, err) != OK)
        return err->code;
    const char *installed = path_join(a, dir, "../share/cuda-agent");
    if (path_exists(path_join(a, installed, "include/cuda_agent.h"))) {
        own_mem char *whole = realpath(installed, NULL);
        *ret = str_z(a, str_from(whole ? whole : installed));
        return OK;
    }
    if (path_exists(path_join(a, CA_SOURCE_DIR, "include/cuda_agent.h"))) {
        *ret = CA_SOURCE_DIR;
        return OK;
    }
    err_raise(err, ERR_MISSING, "the product's own files are not beside the program");
    return err_hint(err, "unpack the whole archive: bin/ and share/ belong together");
}
