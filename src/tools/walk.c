#include "tools/walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/own.h"
#include "sys/clock.h"
#include "sys/file.h"

struct state {
    struct arena *arena;
    struct walk *w;
    size_t cap, entries, root_len;
    bool stop; /* too many, or too long */
};

static int64_t mtime_of(const struct stat *st)
{
    return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

static void add(struct state *s, const char *rel, const struct stat *st)
{
    if (s->w->n == s->cap) {
        size_t cap = s->cap == 0 ? 64 : s->cap * 2;
        struct found *more = arena_new(s->arena, struct found, cap);
        if (s->cap > 0)
            memcpy(more, s->w->file, s->cap * sizeof *more);
        s->w->file = more;
        s->cap = cap;
    }
    s->w->file[s->w->n++] =
        (struct found){ rel, rel + s->root_len, mtime_of(st), (int64_t)st->st_size };
}

static void visit(struct state *s, int fd, const char *rel, int depth);

static void entry(struct state *s, int dir, const char *in, const char *name, int depth)
{
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return; /* gone meanwhile */
    const char *rel =
        strcmp(in, ".") == 0 ? str_z(s->arena, str_from(name)) : path_join(s->arena, in, name);
    if (S_ISREG(st.st_mode))
        add(s, rel, &st);
    if (!S_ISDIR(st.st_mode) || strcmp(name, ".git") == 0)
        return;
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0)
        visit(s, fd, rel, depth + 1);
}

/* Takes fd over. */
static void visit(struct state *s, int fd, const char *rel, int depth)
{
    DIR *d = fdopendir(fd);
    if (d == NULL) {
        own_fd_drop(&fd);
        return;
    }
    for (struct dirent *e = readdir(d); e != NULL && !s->stop; e = readdir(d)) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        s->stop = ++s->entries > WALK_ENTRIES_MAX ||
                  (s->entries % 256 == 0 && clock_ms() > s->w->until_ms);
        s->w->cut = s->w->cut || s->stop || depth > WALK_DEPTH_MAX;
        if (!s->stop && depth <= WALK_DEPTH_MAX)
            entry(s, dirfd(d), rel, e->d_name, depth);
    }
    closedir(d);
}

static int newest_first(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    if (x->mtime_ns != y->mtime_ns)
        return x->mtime_ns > y->mtime_ns ? -1 : 1;
    return strcmp(x->rel, y->rel);
}

enum err_code walk_files(const struct place *from, struct arena *a, struct walk *ret,
                         struct err *err)
{
    struct walk w = { .until_ms = clock_ms() + WALK_MS };
    struct state s = { .arena = a, .w = &w };
    struct stat st;
    if (place_look(from, &st, err) != OK)
        return err->code;
    if (st.st_mode == 0)
        return err_raise(err, ERR_USAGE, "there is no '%s'", from->name);
    if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
        return err_raise(err, ERR_USAGE, "'%s' is neither file nor folder", from->name);
    if (S_ISDIR(st.st_mode)) {
        int fd = open_below(from->folder->fd, from->rel, O_RDONLY | O_DIRECTORY, true);
        if (fd < 0)
            return err_sys(err, "open folder '%s'", from->name);
        s.root_len = strcmp(from->rel, ".") == 0 ? 0 : strlen(from->rel) + 1;
        visit(&s, fd, from->rel, 0);
    } else {
        const char *slash = strrchr(from->rel, '/');
        s.root_len = slash == NULL ? 0 : (size_t)(slash - from->rel) + 1;
        add(&s, from->rel, &st);
    }
    if (w.n > 0)
        qsort(w.file, w.n, sizeof *w.file, newest_first);
    *ret = w;
    return OK;
}

static void give(int dir, const char *name, uid_t uid, gid_t gid, int depth);

static void give_below(int fd, uid_t uid, gid_t gid, int depth)
{
    DIR *d = fdopendir(fd);
    if (d == NULL) {
        own_fd_drop(&fd);
        return;
    }
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d))
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            give(dirfd(d), e->d_name, uid, gid, depth);
    closedir(d);
}

/* By descriptor: what stands under the name may become something else meanwhile. */
static void give(int dir, const char *name, uid_t uid, gid_t gid, int depth)
{
    struct stat st;
    own_fd fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0)
        return;
    bool folder = S_ISDIR(st.st_mode), file = S_ISREG(st.st_mode) && st.st_nlink == 1;
    if (st.st_uid == 0 && (folder || file) && fchownat(fd, "", uid, gid, AT_EMPTY_PATH) != 0)
        return; /* a file system without owners */
    int below = folder && depth < WALK_DEPTH_MAX
                    ? openat(fd, ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                    : -1;
    if (below >= 0)
        give_below(below, uid, gid, depth + 1);
}

void walk_give(int dir_fd, uid_t uid, gid_t gid)
{
    give_below(dir_fd, uid, gid, 0);
}
