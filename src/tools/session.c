/* A session: its folders, what the model has seen, what is frozen. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "core/own.h"
#include "sys/file.h"
#include "tools/shell.h"
#include "tools/tools_int.h"
#include "tools/walk.h"

#define INSIDE_WORKSPACE "/workspace"
#define INSIDE_SPILL "/tool-output"
#define SCRATCH_HEAD "cuda-agent-tools"
#define SCRATCH_YOUNG_S 60

void hash_text(struct str text, char ret[HASH_HEX])
{
    hash_parts(&text, 1, ret);
}

static uint64_t place_key(const struct tools *t, const struct place *p)
{
    uint64_t h = 0xcbf29ce484222325u + (uint64_t)(p->folder - t->folder);
    for (const char *c = p->rel; *c != '\0'; c++)
        h = (h ^ (unsigned char)*c) * 0x100000001b3u;
    return h;
}

static struct seen *seen_find(const struct tools *t, uint64_t key)
{
    for (size_t i = 0; i < t->n_seen; i++)
        if (t->seen[i].path == key)
            return &t->seen[i];
    return NULL;
}

/* Doubled; at its limit the oldest entry is written over. NULL: no memory. */
static struct seen *seen_add(struct tools *t)
{
    if (t->n_seen == SEEN_MAX)
        return &t->seen[t->next_seen++ % SEEN_MAX];
    bool full = t->n_seen == 0 || (t->n_seen >= 16 && (t->n_seen & (t->n_seen - 1)) == 0);
    if (full) {
        struct seen *more = realloc(t->seen, (t->n_seen == 0 ? 16 : t->n_seen * 2) * sizeof *more);
        if (more == NULL)
            return NULL;
        t->seen = more;
    }
    return &t->seen[t->n_seen++];
}

void seen_put(struct tools *t, const struct place *p, struct str text)
{
    uint64_t key = place_key(t, p);
    struct seen *s = seen_find(t, key);
    if (s == NULL)
        s = seen_add(t);
    if (s == NULL)
        return; /* forgotten: it has to be read again */
    s->path = key;
    hash_text(text, s->hash);
}

enum err_code seen_check(const struct tools *t, const struct place *p, struct str text,
                         struct err *err)
{
    const struct seen *s = seen_find(t, place_key(t, p));
    char now[HASH_HEX];
    if (s == NULL) {
        err_raise(err, ERR_USAGE, "'%s' exists and was not read yet", p->name);
        return err_hint(err, "Read it first, so that nothing is overwritten unseen");
    }
    hash_text(text, now);
    if (strcmp(now, s->hash) != 0) {
        err_raise(err, ERR_USAGE, "'%s' has changed since it was read or written last", p->name);
        return err_hint(err, "a command or somebody else wrote it: Read it again");
    }
    return OK;
}

enum err_code place_may_write(const struct tools *t, const struct place *p, struct err *err)
{
    if (p->folder != &t->folder[FOLDER_WORKSPACE])
        return err_raise(err, ERR_USAGE, "'%s' can be read, not written", p->name);
    for (size_t i = 0; i < t->n_frozen; i++)
        if (strcmp(p->rel, t->frozen[i].rel) == 0) {
            err_raise(err, ERR_USAGE, "'%s' is frozen: it can be read, not written", p->name);
            return err_hint(err, "it belongs to the task; your work goes into other files");
        }
    return OK;
}

const char *frozen_copy(const struct tools *t, struct arena *a, size_t i)
{
    return arena_fmt(a, "%s/frozen/%zu", t->scratch, i);
}

int spill_new(struct tools *t, struct arena *a, const char **ret_name)
{
    int serial = ++t->spills;
    const char *name = arena_fmt(a, "%d.txt", serial);
    const char *dir = t->folder[FOLDER_SPILL].outside;
    if (serial > SPILLS_MAX)
        unlink(arena_fmt(a, "%s/%d.txt", dir, serial - SPILLS_MAX));
    *ret_name = path_join(a, t->folder[FOLDER_SPILL].inside, name);
    return open(path_join(a, dir, name), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                0644);
}

/* ---- opening ---- */

static enum err_code folder_open(struct folder *f, const char *outside, const char *inside,
                                 int rung, struct err *err)
{
    *f =
        (struct folder){ .fd = open(outside, O_PATH | O_DIRECTORY | O_CLOEXEC),
                         .inside = rung == 1 ? inside : outside, /* below it nothing is elsewhere */
                         .outside = outside };
    return f->fd < 0 ? err_sys(err, "open folder '%s'", outside) : OK;
}

/* Folders of owners that were killed: nobody holds their lock. Young ones may not be locked yet. */
static void scratch_sweep(const char *parent)
{
    static bool swept;
    own_arena tmp = { 0 };
    DIR *d = swept ? NULL : opendir(parent);
    swept = true;
    for (struct dirent *e = d ? readdir(d) : NULL; e != NULL; e = readdir(d)) {
        const char *path = path_join(&tmp, parent, e->d_name);
        struct err ignored = { 0 }; /* what stays is met again */
        struct stat st;
        if (!str_starts(str_from(e->d_name), S(SCRATCH_HEAD "-")) || lstat(path, &st) != 0 ||
            !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
            time(NULL) - st.st_ctime < SCRATCH_YOUNG_S)
            continue;
        own_fd fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && shell_remove(path, &ignored) != OK)
            ignored = (struct err){ 0 };
    }
    if (d != NULL)
        closedir(d);
}

static enum err_code scratch_find(struct tools *t, struct err *err)
{
    own_arena tmp = { 0 };
    const char *parent = getenv("TMPDIR"), *made = t->spec.scratch;
    if (parent == NULL || parent[0] != '/')
        parent = "/tmp";
    if (made == NULL) {
        scratch_sweep(parent);
        if (dir_temp(&tmp, parent, SCRATCH_HEAD, &made, err) != OK)
            return err->code;
        t->scratch_made = true;
    }
    t->scratch = realpath(made, NULL);
    if (t->scratch == NULL)
        return err_sys(err, "find the scratch folder '%s'", made);
    t->scratch_lock = open(t->scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (t->scratch_lock < 0 || flock(t->scratch_lock, LOCK_EX | LOCK_NB) != 0)
        return err_sys(err, "lock the scratch folder '%s'", made);
    return OK;
}

static enum err_code scratch_make(struct tools *t, struct err *err)
{
    own_arena tmp = { 0 };
    if (scratch_find(t, err) != OK)
        return err->code;
    size_t n = strlen(t->workspace);
    if (strncmp(t->scratch, t->workspace, n) == 0 &&
        (t->scratch[n] == '/' || t->scratch[n] == '\0'))
        return err_raise(err, ERR_USAGE, "the scratch folder '%s' lies in the workspace",
                         t->scratch);
    if (chmod(t->scratch, dir_mode()) != 0)
        return err_sys(err, "close the scratch folder '%s'", t->scratch);
    t->scratch_ours = true;
    static const char *const below[] = { "spill", "tmp", "frozen" };
    for (size_t i = 0; i < COUNT(below); i++)
        if (dir_make(path_join(&tmp, t->scratch, below[i]), 0755, err) != OK)
            return err->code;
    return OK;
}

static enum err_code frozen_keep(struct tools *t, const char *rel, struct err *err)
{
    own_arena tmp = { 0 };
    struct place p;
    struct str text;
    struct stat st;
    if (t->n_frozen == FROZEN_MAX)
        return err_raise(err, ERR_LIMIT, "more than %d frozen files", FROZEN_MAX);
    if (place_find(t->folder, &tmp, str_from(rel), &p, err) != OK)
        return err_within(err, "frozen file");
    if (strcmp(p.rel, rel) != 0)
        return err_raise(err, ERR_USAGE, "frozen file '%s': write it as '%s'", rel, p.rel);
    own_fd plain = open_below(p.folder->fd, rel, O_PATH, false); /* no link */
    if (plain < 0)
        return err_sys(err, "frozen file '%s'", rel);
    if (place_read(&p, &tmp, &text, &st, err) != OK)
        return err_within(err, "frozen file");
    struct frozen *f = &t->frozen[t->n_frozen];
    f->rel = rel;
    hash_text(text, f->hash);
    return file_write(frozen_copy(t, &tmp, t->n_frozen++), text, 0444, err);
}

static enum err_code rows_check(const struct tools *t, struct err *err)
{
    for (size_t s = 0; s < t->spec.n_sets; s++)
        for (size_t i = 0; i < t->spec.set[s].n; i++) {
            const struct tool *row = &t->spec.set[s].row[i];
            if (tools_find(t, str_from(row->name)) != row)
                return err_raise(err, ERR_USAGE, "two tools are named '%s'", row->name);
        }
    return OK;
}

static enum err_code open_parts(struct tools *t, struct err *err)
{
    struct box_facts facts;
    if (box_probe(&facts, err) != OK)
        return err->code;
    t->rung = facts.rung;
    t->workspace = realpath(t->spec.workspace, NULL);
    if (t->workspace == NULL)
        return err_sys(err, "find the workspace '%s'", t->spec.workspace);
    if (scratch_make(t, err) != OK)
        return err->code;
    own_arena tmp = { 0 };
    char *spill = strdup(path_join(&tmp, t->scratch, "spill"));
    t->folder[FOLDER_SPILL].outside = spill;
    if (spill == NULL)
        return err_sys(err, "open a session");
    struct folder *f = t->folder;
    if (folder_open(&f[FOLDER_WORKSPACE], t->workspace, INSIDE_WORKSPACE, t->rung, err) != OK ||
        folder_open(&f[FOLDER_SPILL], spill, INSIDE_SPILL, t->rung, err) != OK)
        return err->code;
    t->cwd = strdup(f[FOLDER_WORKSPACE].inside);
    if (t->cwd == NULL)
        return err_sys(err, "open a session");
    for (size_t i = 0; t->spec.frozen != NULL && t->spec.frozen[i] != NULL; i++)
        if (frozen_keep(t, t->spec.frozen[i], err) != OK)
            return err->code;
    return rows_check(t, err);
}

enum err_code tools_open(const struct tools_spec *spec, struct tools **ret, struct err *err)
{
    struct tools *t = calloc(1, sizeof *t);
    if (t == NULL)
        return err_sys(err, "open a session");
    t->spec = *spec;
    t->scratch_lock = -1;
    for (size_t i = 0; i < FOLDERS; i++)
        t->folder[i].fd = -1;
    if (open_parts(t, err) != OK) {
        tools_close(t);
        return err->code;
    }
    *ret = t;
    return OK;
}

/* What lies in the scratch folder was ours before: the model's commands may have closed folders. */
static void scratch_remove(struct tools *t)
{
    static const char *const below[] = { "spill", "tmp", "frozen" };
    own_arena tmp = { 0 };
    struct err ignored = { 0 }; /* what stays is swept with the folder above it */
    for (size_t i = 0; t->scratch_ours && i < COUNT(below); i++)
        if (shell_remove(path_join(&tmp, t->scratch, below[i]), &ignored) != OK)
            ignored = (struct err){ 0 };
    if (t->scratch != NULL && t->scratch_made)
        rmdir(t->scratch);
}

void tools_close(struct tools *t)
{
    if (t == NULL)
        return;
    if (t->call != NULL)
        tool_call_end(t->call);
    shells_end(t);
    scratch_remove(t);
    own_fd_drop(&t->scratch_lock);
    for (size_t i = 0; i < FOLDERS; i++)
        own_fd_drop(&t->folder[i].fd);
    free((char *)(uintptr_t)t->folder[FOLDER_SPILL].outside);
    free(t->workspace);
    free(t->scratch);
    free(t->cwd);
    free(t->seen);
    json_decref(t->todos);
    free(t);
}

const char *tools_folder(const struct tools *t)
{
    return t->folder[FOLDER_WORKSPACE].inside;
}

void tools_adopt(const struct tools *t)
{
    const struct folder *f = &t->folder[FOLDER_WORKSPACE];
    struct stat st;
    int fd = geteuid() != 0 || fstat(f->fd, &st) != 0 || st.st_uid == 0
                 ? -1 /* nobody but root owns it yet: the first command's box takes all */
                 : open_below(f->fd, ".", O_RDONLY | O_DIRECTORY, false);
    if (fd >= 0)
        walk_give(fd, st.st_uid, st.st_gid);
}

/* ---- frozen files ---- */

static bool frozen_is_whole(const struct tools *t, const struct frozen *f)
{
    own_arena tmp = { 0 };
    struct err ignored = { 0 };
    struct place p = { &t->folder[FOLDER_WORKSPACE], f->rel, f->rel };
    struct str text;
    struct stat st;
    char now[HASH_HEX];
    own_fd plain = open_below(p.folder->fd, f->rel, O_PATH, false);
    if (plain < 0 || place_read(&p, &tmp, &text, &st, &ignored) != OK)
        return false;
    hash_text(text, now);
    return strcmp(now, f->hash) == 0;
}

/* Whatever stands in the place of a folder on the way, or of the file, is moved aside. */
static enum err_code way_clear(struct tools *t, const char *rel, struct err *err)
{
    own_arena tmp = { 0 };
    struct str rest = str_from(rel), part;
    own_fd at = fcntl(t->folder[FOLDER_WORKSPACE].fd, F_DUPFD_CLOEXEC, 0);
    while (at >= 0 && str_cut(&rest, '/', &part)) {
        const char *name = str_z(&tmp, part);
        const char *aside = arena_fmt(&tmp, "%s.aside-%d", name, ++t->spills);
        struct stat st;
        if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            return errno == ENOENT ? OK : err_sys(err, "find '%s'", name);
        bool right = rest.len == 0 ? S_ISREG(st.st_mode) : S_ISDIR(st.st_mode);
        if (!right)
            return renameat(at, name, at, aside) == 0 ? OK : err_sys(err, "move '%s' aside", name);
        int next = rest.len == 0 ? -1 : open_below(at, name, O_PATH | O_DIRECTORY, false);
        own_fd_drop(&at);
        at = next;
    }
    return OK;
}

static enum err_code frozen_put(struct tools *t, size_t i, struct err *err)
{
    own_arena tmp = { 0 };
    struct place p = { &t->folder[FOLDER_WORKSPACE], t->frozen[i].rel, t->frozen[i].rel };
    struct str text;
    if (way_clear(t, p.rel, err) != OK ||
        file_read(&tmp, frozen_copy(t, &tmp, i), PLACE_FILE_MAX, &text, err) != OK)
        return err->code;
    return place_write(&p, text, 0444, err);
}

enum err_code tools_frozen_check(struct tools *t, struct err *err)
{
    own_arena tmp = { 0 };
    struct buf names = { .arena = &tmp, .max = 512 };
    for (size_t i = 0; i < t->n_frozen; i++) {
        if (frozen_is_whole(t, &t->frozen[i]))
            continue;
        buf_addf(&names, "%s%s", names.len == 0 ? "" : ", ", t->frozen[i].rel);
        if (frozen_put(t, i, err) != OK)
            return err_within(err, "put back the frozen file '%s'", t->frozen[i].rel);
    }
    if (names.len == 0)
        return OK;
    return err_raise(err, ERR_STATE, "frozen files were changed, and put back: %s", names.ptr);
}
