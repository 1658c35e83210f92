#include "task/candidate.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/own.h"

#define UNREAD_MAX 80 /* characters of names */

static const char *const target_names[] = { [TARGET_CUDA] = "cuda", [TARGET_CPU] = "cpu" };

const char *target_name(enum target t)
{
    return target_names[t];
}

static const char *const contract_names[] = {
    [CONTRACT_NATIVE] = "native", [CONTRACT_TORCH] = "torch"
};

const char *contract_name(enum contract c)
{
    return contract_names[c];
}

static int by_name(const void *a, const void *b)
{
    const struct source_file *x = a, *y = b;
    return strcmp(x->name, y->name);
}

void candidate_seal(struct candidate *c)
{
    qsort(c->file, c->n_files, sizeof c->file[0], by_name);
    struct str part[2 + 2 * CANDIDATE_FILES_MAX];
    size_t n = 0;
    part[n++] = str_from(target_name(c->target));
    if (c->contract != CONTRACT_NATIVE)
        part[n++] = str_from(contract_name(c->contract));
    for (size_t i = 0; i < c->n_files; i++) {
        part[n++] = str_from(c->file[i].name);
        part[n++] = c->file[i].text;
    }
    hash_parts(part, n, c->hash);
}

static bool ending_fits(struct str name, const struct candidate *c)
{
    static const struct {
        const char *ending;
        bool cuda, torch;
    } row[] = { { ".c", false, false },  { ".h", false, false },  { ".cu", true, false },
                { ".cuh", true, false }, { ".cpp", false, true }, { ".hpp", false, true } };
    for (size_t i = 0; i < COUNT(row); i++)
        if (str_ends(name, str_from(row[i].ending)) && (!row[i].cuda || c->target == TARGET_CUDA) &&
            (!row[i].torch || c->contract == CONTRACT_TORCH))
            return true;
    return false;
}

/* Names become arguments of a compiler: nothing that starts like an option. */
static bool name_fits(struct str name)
{
    if (name.len == 0 || name.len > 64 || name.ptr[0] == '-' || name.ptr[0] == '.')
        return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && !(c >= '0' && c <= '9') && c != '_' && c != '.' && c != '-')
            return false;
    }
    return true;
}

static enum err_code bytes_read(struct arena *a, int fd, const char *name, struct str *ret,
                                struct err *err)
{
    struct buf b = { .arena = a, .max = CANDIDATE_FILE_BYTES_MAX };
    char chunk[16384];
    for (;;) {
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(err, "read '%s'", name);
        if (n == 0)
            break;
        buf_add(&b, (struct str){ chunk, (size_t)n });
        if (b.full) /* it grew after the look at its size */
            return err_raise(err, ERR_FORMAT, "'%s' holds more than %zu bytes", name,
                             CANDIDATE_FILE_BYTES_MAX);
    }
    return buf_done(&b, ret, err);
}

/* O_NONBLOCK: opening a FIFO must not wait for a writer. */
static enum err_code source_read(struct arena *a, int dir, const char *name,
                                 struct source_file *ret, struct err *err)
{
    struct stat st;
    if (!name_fits(str_from(name))) {
        err_raise(err, ERR_FORMAT, "source file '%s' has a name that is not allowed", name);
        return err_hint(err, "use at most 64 of A-Z a-z 0-9 _ . - and begin with a letter");
    }
    own_fd fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ELOOP)
        return err_raise(err, ERR_FORMAT, "source file '%s' is a symbolic link", name);
    if (fd < 0)
        return err_sys(err, "open '%s'", name);
    if (fstat(fd, &st) != 0)
        return err_sys(err, "stat '%s'", name);
    if (!S_ISREG(st.st_mode))
        return err_raise(err, ERR_FORMAT, "source file '%s' is no regular file", name);
    if ((uint64_t)st.st_size > CANDIDATE_FILE_BYTES_MAX)
        return err_raise(err, ERR_FORMAT, "'%s' holds more than %zu bytes", name,
                         CANDIDATE_FILE_BYTES_MAX);
    *ret = (struct source_file){ .name = str_z(a, str_from(name)) };
    return bytes_read(a, fd, name, &ret->text, err);
}

static void dir_drop(DIR **d)
{
    if (*d != NULL)
        closedir(*d);
}

/* kernels/ below the folder `top`, or the folder itself. */
static enum err_code kernels_open(const char *path, int top, DIR **ret, bool *ret_apart,
                                  struct err *err)
{
    own_fd fd = openat(top, "kernels", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && (errno == ELOOP || errno == ENOTDIR))
        return err_raise(err, ERR_FORMAT, "'%s/kernels' is a link or a file, wanted a folder",
                         path);
    *ret_apart = fd >= 0;
    if (fd < 0 && errno == ENOENT)
        fd = openat(top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(err, "open '%s/kernels'", path);
    *ret = fdopendir(fd);
    if (*ret == NULL)
        return err_sys(err, "read folder '%s'", path);
    own_fd_take(&fd);
    return OK;
}

/* An author who does not see why a file has no effect is told. */
static void unread_add(struct arena *a, struct candidate *c, const char *name)
{
    size_t had = c->unread != NULL ? strlen(c->unread) : 0;
    if (had < UNREAD_MAX)
        c->unread = arena_fmt(a, "%s%s%s", had > 0 ? c->unread : "", had > 0 ? ", " : "",
                              had + strlen(name) < UNREAD_MAX ? name : "...");
}

static enum err_code sources_read(struct arena *a, const char *dir, DIR *d, bool apart,
                                  struct candidate *c, struct err *err)
{
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        if (e->d_name[0] == '.') /* an editor's business */
            continue;
        if (!ending_fits(str_from(e->d_name), c)) {
            if (apart)
                unread_add(a, c, e->d_name);
            continue;
        }
        if (c->n_files == CANDIDATE_FILES_MAX)
            return err_raise(err, ERR_LIMIT, "'%s' has more than %d source files", dir,
                             CANDIDATE_FILES_MAX);
        if (source_read(a, dirfd(d), e->d_name, &c->file[c->n_files], err) != OK)
            return err_within(err, "candidate in '%s'", dir);
        c->n_files++;
    }
    return OK;
}

enum err_code candidate_read(struct arena *a, const char *dir, enum target target,
                             struct candidate *ret, struct err *err)
{
    __attribute__((cleanup(dir_drop))) DIR *d = NULL;
    struct candidate c = { .target = target, .author = "hand" };
    own_fd top = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (top < 0) {
        err_sys(err, "open folder '%s'", dir);
        return err_hint(err, "a work folder holds kernels/ with the candidate's sources");
    }
    if (faccessat(top, MODEL_NEW, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
        c.contract = CONTRACT_TORCH;
        if (source_read(a, top, MODEL_NEW, &c.file[c.n_files++], err) != OK)
            return err_within(err, "candidate in '%s'", dir);
    }
    bool apart = false; /* where it is not, the task and notes lie beside the sources */
    if (kernels_open(dir, top, &d, &apart, err) != OK ||
        sources_read(a, dir, d, apart, &c, err) != OK)
        return err->code;
    if (c.n_files == 0) {
        err_raise(err, ERR_FORMAT, "no %s source in '%s'", target_name(target), dir);
        return err_hint(err, "put %s into its kernels/ folder",
                        target == TARGET_CUDA ? "a .cu file" : "a .c file");
    }
    candidate_seal(&c);
    *ret = c;
    return OK;
}
