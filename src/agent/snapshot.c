#include "agent/snapshot.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/json.h"
#include "sys/file.h"
#include "tools/place.h"

struct snapshot_file {
    char *path; /* owned */
    char hash[SHA256_HEX];
    ino_t inode;
    int64_t size, mtime_ns, ctime_ns;
    unsigned mode;
};

void snapshot_fini(struct snapshot *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->file[i].path);
    free(s->file);
    *s = (struct snapshot){ 0 };
}

static int64_t ns(struct timespec t)
{
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- a walk ---- */

struct look {
    const struct snapshot *before;
    struct snapshot now;
    const char *objects;
    json_t *skipped;
};

static void skip(struct look *l, const char *rel, const char *why)
{
    json_array_append_new(l->skipped, json_pack("{s:s, s:s}", "path", rel, "why", why));
}

static int by_path(const void *a, const void *b)
{
    const struct snapshot_file *x = a, *y = b;
    return strcmp(x->path, y->path);
}

static const struct snapshot_file *known(const struct snapshot *s, const char *rel)
{
    struct snapshot_file key = { .path = (char *)(uintptr_t)rel };
    return s->n == 0 ? NULL : bsearch(&key, s->file, s->n, sizeof key, by_path);
}

static bool unchanged(const struct snapshot_file *f, const struct stat *st)
{
    return f != NULL && f->inode == st->st_ino && f->size == st->st_size &&
           f->mtime_ns == ns(st->st_mtim) && f->ctime_ns == ns(st->st_ctim);
}

static enum err_code file_keep(struct look *l, struct snapshot_file *f, const char *rel,
                               struct str bytes, struct err *err)
{
    struct snapshot *s = &l->now;
    if (bytes.ptr != NULL && objects_put(l->objects, bytes, f->hash, err) != OK)
        return err->code;
    if (s->n == s->cap) {
        size_t cap = s->cap ? s->cap * 2 : 16;
        struct snapshot_file *more = reallocarray(s->file, cap, sizeof *more);
        if (more == NULL)
            return err_sys(err, "no memory for %zu files", cap);
        s->file = more;
        s->cap = cap;
    }
    f->path = strdup(rel);
    if (f->path == NULL)
        return err_sys(err, "no memory for a name");
    s->file[s->n++] = *f;
    return OK;
}

static enum err_code file_look(struct look *l, int dir, const char *name, const char *rel,
                               struct err *err)
{
    own_arena tmp = { 0 };
    own_fd fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0) {
        skip(l, rel, "it cannot be opened");
        return OK;
    }
    if (!S_ISREG(st.st_mode) || st.st_size > (off_t)SNAPSHOT_FILE_MAX) {
        skip(l, rel, S_ISREG(st.st_mode) ? "more than 1 MiB" : "no file");
        return OK;
    }
    struct snapshot_file f = { .inode = st.st_ino,
                               .size = st.st_size,
                               .mtime_ns = ns(st.st_mtim),
                               .ctime_ns = ns(st.st_ctim),
                               .mode = st.st_mode & 0777 };
    const struct snapshot_file *old = known(l->before, rel);
    if (unchanged(old, &st)) {
        memcpy(f.hash, old->hash, sizeof f.hash);
        return file_keep(l, &f, rel, (struct str){ 0 }, err);
    }
    size_t max = (size_t)st.st_size + 1, got = 0; /* one more: has it grown? */
    char *bytes = arena_new(&tmp, char, max);
    for (ssize_t n; got < max && (n = read(fd, bytes + got, max - got)) > 0;)
        got += (size_t)n;
    if (got > (size_t)st.st_size)
        f.mtime_ns = -1; /* somebody writes: what was read counts, and it is read again */
    f.size = (int64_t)got;
    return file_keep(l, &f, rel, (struct str){ bytes, got }, err);
}

static enum err_code dir_look(struct look *l, int dir, const char *rel, int depth, struct err *err);

static enum err_code entry_look(struct look *l, int dir, const struct dirent *d, const char *rel,
                                int depth, struct err *err)
{
    struct stat st;
    if (fstatat(dir, d->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return OK; /* gone meanwhile */
    own_json name = json_string(rel);
    if (name == NULL) {
        skip(l, "?", "a name that is no UTF-8");
        return OK;
    }
    if (l->now.n == SNAPSHOT_FILES_MAX) {
        skip(l, rel, "there are too many files");
        return OK;
    }
    if (S_ISREG(st.st_mode))
        return file_look(l, dir, d->d_name, rel, err);
    bool folder = S_ISDIR(st.st_mode);
    const char *why = !folder                                 ? "no file"
                      : d->d_name[0] == '.'                   ? "a hidden folder"
                      : strcmp(d->d_name, "__pycache__") == 0 ? "a cache"
                      : depth == SNAPSHOT_DEPTH_MAX           ? "too deep"
                                                              : NULL;
    if (why != NULL) {
        skip(l, rel, why);
        return OK;
    }
    int sub = openat(dir, d->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (sub >= 0)
        return dir_look(l, sub, rel, depth + 1, err);
    skip(l, rel, "it cannot be opened");
    return OK;
}

static void dir_drop(DIR **d)
{
    if (*d != NULL)
        closedir(*d);
}

/* Takes `dir` over. */
static enum err_code dir_look(struct look *l, int dir, const char *rel, int depth, struct err *err)
{
    __attribute__((cleanup(dir_drop))) DIR *d = fdopendir(dir);
    if (d == NULL) {
        own_fd_drop(&dir);
        return err_sys(err, "read the folder '%s'", rel);
    }
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        own_arena tmp = { 0 };
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        const char *path = rel[0] == '\0' ? e->d_name : path_join(&tmp, rel, e->d_name);
        if (entry_look(l, dirfd(d), e, path, depth, err) != OK)
            return err->code;
    }
    return OK;
}

/* ---- take ---- */

static void tree_hash(struct snapshot *s)
{
    struct sha256 h;
    sha256_start(&h);
    for (size_t i = 0; i < s->n; i++) {
        unsigned char mode[2] = { (unsigned char)(s->file[i].mode >> 8),
                                  (unsigned char)s->file[i].mode };
        sha256_part(&h, str_from(s->file[i].path));
        sha256_part(&h, str_from(s->file[i].hash));
        sha256_part(&h, (struct str){ (const char *)mode, sizeof mode });
    }
    sha256_hex(&h, s->tree);
}

static json_t *tree_json(const struct snapshot *s, json_t *skipped)
{
    json_t *files = json_array();
    for (size_t i = 0; i < s->n; i++)
        json_array_append_new(files,
                              json_pack("{s:s, s:s, s:I, s:i}", "path", s->file[i].path, "hash",
                                        s->file[i].hash, "size", (json_int_t)s->file[i].size,
                                        "mode", (int)s->file[i].mode));
    json_t *j = json_pack("{s:s, s:o}", "tree", s->tree, "files", files);
    if (json_array_size(skipped) > 0)
        json_object_set(j, "skipped", skipped);
    return j;
}

static enum err_code look_all(struct look *l, const char *workspace, struct err *err)
{
    int dir = open(workspace, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_sys(err, "open the workspace '%s'", workspace);
    if (dir_look(l, dir, "", 0, err) != OK)
        return err_within(err, "look at the workspace '%s'", workspace);
    if (l->now.n > 0)
        qsort(l->now.file, l->now.n, sizeof *l->now.file, by_path);
    tree_hash(&l->now);
    return OK;
}

enum err_code snapshot_take(struct snapshot *s, const char *workspace, const char *objects,
                            json_t **ret, struct err *err)
{
    own_json skipped = json_array();
    struct look l = { .before = s, .objects = objects, .skipped = skipped };
    if (look_all(&l, workspace, err) != OK) {
        snapshot_fini(&l.now);
        return err->code;
    }
    bool same = strcmp(l.now.tree, s->tree) == 0;
    snapshot_fini(s);
    *s = l.now;
    *ret = same ? NULL : tree_json(s, skipped);
    return OK;
}

/* ---- restore ---- */

static const json_t *entry_of(const json_t *files, const char *path)
{
    size_t i;
    const json_t *f;
    json_array_foreach(files, i, f)
    {
        const char *p = json_string_value(json_object_get(f, "path"));
        if (p != NULL && strcmp(p, path) == 0)
            return f;
    }
    return NULL;
}

static enum err_code files_clear(const struct snapshot *now, const struct folder *folder,
                                 const json_t *files, struct err *err)
{
    for (size_t i = 0; i < now->n; i++) {
        const char *path = now->file[i].path;
        if (entry_of(files, path) == NULL && unlinkat(folder->fd, path, 0) != 0 && errno != ENOENT)
            return err_sys(err, "remove '%s'", path);
    }
    return OK;
}

static bool is_held(const struct snapshot *now, const char *path, struct str hash, int64_t mode)
{
    const struct snapshot_file *f = known(now, path);
    return f != NULL && str_eq(str_from(f->hash), hash) && f->mode == (unsigned)mode;
}

static enum err_code file_put(const struct folder folders[FOLDERS], const struct snapshot *now,
                              const char *objects, const json_t *f, struct err *err)
{
    own_arena tmp = { 0 };
    struct str path, hash, bytes;
    struct place place;
    struct stat st;
    int64_t mode;
    if (json_get_text(f, "path", &path, err) != OK || json_get_text(f, "hash", &hash, err) != OK ||
        json_get_int(f, "mode", &mode, err) != OK)
        return err->code;
    const char *rel = str_z(&tmp, path);
    if (is_held(now, rel, hash, mode))
        return OK;
    if (place_find(folders, &tmp, path, &place, err) != OK ||
        objects_get(&tmp, objects, hash, &bytes, err) != OK)
        return err->code;
    /* Something that is no file may stand in its place. */
    const char *outside = path_join(&tmp, place.folder->outside, place.rel);
    if (lstat(outside, &st) == 0 && !S_ISREG(st.st_mode) && dir_remove(outside, err) != OK)
        return err->code;
    return place_write(&place, bytes, (mode_t)(mode & 0777), err);
}

static enum err_code files_put(const char *workspace, const struct snapshot *now,
                               const char *objects, const json_t *files, struct err *err)
{
    own_fd fd = open(workspace, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(err, "open the workspace '%s'", workspace);
    struct folder folders[FOLDERS] = {
        [FOLDER_WORKSPACE] = { .fd = fd, .inside = workspace, .outside = workspace },
        [FOLDER_SPILL] = { .fd = -1, .inside = "", .outside = "" }
    };
    if (files_clear(now, &folders[FOLDER_WORKSPACE], files, err) != OK)
        return err->code;
    size_t i;
    const json_t *f;
    json_array_foreach(files, i, f)
    {
        if (file_put(folders, now, objects, f, err) != OK)
            return err->code;
    }
    return OK;
}

enum err_code snapshot_restore(const char *workspace, const char *objects, const json_t *files,
                               struct err *err)
{
    own_json skipped = json_array();
    struct snapshot none = { 0 };
    struct look l = { .before = &none, .objects = objects, .skipped = skipped };
    enum err_code code = look_all(&l, workspace, err);
    if (code == OK)
        code = files_put(workspace, &l.now, objects, files, err);
    snapshot_fini(&l.now);
    return code == OK ? OK : err_within(err, "put the workspace back");
}
