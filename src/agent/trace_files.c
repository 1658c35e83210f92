/* The workspace's files as events and objects/ keep them. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "agent/trace.h"
#include "agent/trace_diff.h"
#include "sys/file.h"

#define OBJECT_MAX ((size_t)64 << 20)
#define DIFF_TEXT_MAX                                                           \
    ((size_t)4 << 20) /* bytes of both sides of a file whose lines are compared \
                       */

const json_t *trace_tree(const struct trace *t, int64_t turn)
{
    const json_t *tree = NULL;
    for (size_t i = 0; i < t->n_events; i++)
        if (trace_is(t->event[i], "fs") && trace_int(t->event[i], "turn", 0) <= turn)
            tree = t->event[i];
    return tree;
}

static bool is_hash(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (memchr("0123456789abcdef", s.ptr[i], 16) == NULL)
            return false;
    return s.len >= 32 && s.len <= 64;
}

enum err_code trace_object(const struct trace *t, struct arena *a, struct str hash, struct str *ret,
                           struct err *err)
{
    own_arena tmp = { 0 };
    if (!is_hash(hash))
        return err_raise(err, ERR_FORMAT, "an object's name is no hash");
    if (t->folder == NULL)
        return err_raise(err, ERR_MISSING, "the log has no folder of objects");
    const char *path = path_join(&tmp, path_join(&tmp, t->folder, "objects"), str_z(&tmp, hash));
    if (!path_exists(path))
        return err_raise(err, ERR_MISSING, "'%s' is not there", path);
    return file_read(a, path, OBJECT_MAX, ret, err);
}

static const json_t *file_find(const json_t *tree, struct str path)
{
    size_t i;
    json_t *f;
    json_array_foreach(json_object_get(tree, "files"), i,
                       f) if (str_eq(trace_text(f, "path"), path)) return f;
    return NULL;
}

/* ---- putting back ---- */

/* A path of a log goes nowhere but below the folder: no '..', nothing empty, not from the root. */
static bool path_is_below(struct str path)
{
    struct str part;
    if (path.len == 0 || path.len > 4000 || path.ptr[0] == '/' || path.ptr[path.len - 1] == '/' ||
        memchr(path.ptr, '\0', path.len) != NULL)
        return false;
    while (str_cut(&path, '/', &part))
        if (part.len == 0 || str_eq(part, S(".")) || str_eq(part, S("..")))
            return false;
    return true;
}

/* New or empty: nothing that is there is written over, and no link of anybody's is followed. */
static enum err_code folder_fresh(const char *dir, struct err *err)
{
    if (dir_make(dir, 0755, err) != OK)
        return err->code;
    DIR *d = opendir(dir);
    if (d == NULL)
        return err_sys(err, "open folder '%s'", dir);
    size_t n = 0;
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d))
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    if (n > 0) {
        err_raise(err, ERR_STATE, "folder '%s' is not empty", dir);
        return err_hint(err, "name a new one");
    }
    return OK;
}

static enum err_code file_put(const struct trace *t, const json_t *f, const char *dir,
                              struct err *err)
{
    own_arena tmp = { 0 };
    struct str path = trace_text(f, "path"), text;
    int64_t mode = trace_int(f, "mode", 0644);
    if (trace_object(t, &tmp, trace_text(f, "hash"), &text, err) != OK)
        return err_within(err, "file '%.*s'", STR_FMT(path));
    const char *whole = path_join(&tmp, dir, str_z(&tmp, path));
    const char *folder = arena_fmt(&tmp, "%.*s", (int)(strrchr(whole, '/') - whole), whole);
    if (dir_make(folder, 0755, err) != OK)
        return err->code;
    return file_write(whole, text, (mode_t)(0600 | (mode & 0777)), err);
}

enum err_code trace_restore(const struct trace *t, const json_t *tree, const char *dir,
                            size_t *ret_n, struct err *err)
{
    const json_t *files = json_object_get(tree, "files");
    size_t n = json_array_size(files);
    for (size_t i = 0; i < n; i++) {
        struct str path = trace_text(json_array_get(files, i), "path");
        if (!path_is_below(path))
            return err_raise(err, ERR_FORMAT, "file '%.*s' would lie outside", STR_FMT(path));
    }
    if (folder_fresh(dir, err) != OK)
        return err->code;
    for (size_t i = 0; i < n; i++)
        if (file_put(t, json_array_get(files, i), dir, err) != OK)
            return err_within(err, "restore to '%s'", dir);
    *ret_n = n;
    return OK;
}

/* ---- differences ---- */

static void file_diff(const struct trace *t, const json_t *old, const json_t *new, struct buf *b)
{
    own_arena tmp = { 0 };
    struct str before = S(""), after = S("");
    struct str path = trace_text(new ? new : old, "path");
    struct err err = { 0 };
    buf_addf(b, "--- %s%.*s\n", old ? "a/" : "/dev/null ", STR_FMT(path));
    buf_addf(b, "+++ %s%.*s\n", new ? "b/" : "/dev/null ", STR_FMT(path));
    if ((old != NULL && trace_object(t, &tmp, trace_text(old, "hash"), &before, &err) != OK) ||
        (new != NULL &&trace_object(t, &tmp, trace_text(new, "hash"), &after, &err) != OK)) {
        buf_addf(b, "(contents: %s)\n", err.text);
        return;
    }
    bool binary = (before.len > 0 && memchr(before.ptr, '\0', before.len) != NULL) ||
                  (after.len > 0 && memchr(after.ptr, '\0', after.len) != NULL);
    if (binary || before.len + after.len > DIFF_TEXT_MAX)
        buf_addf(b, "(%s: %zu bytes before, %zu after)\n", binary ? "binary" : "long", before.len,
                 after.len);
    else
        diff_unified(before, after, b);
}

void trace_diff(const struct trace *t, const json_t *before, const json_t *after, struct buf *b)
{
    size_t i;
    json_t *f;
    json_array_foreach(json_object_get(before, "files"), i,
                       f) if (file_find(after, trace_text(f, "path")) == NULL)
        file_diff(t, f, NULL, b);
    json_array_foreach(json_object_get(after, "files"), i, f)
    {
        const json_t *old = file_find(before, trace_text(f, "path"));
        if (old == NULL || !str_eq(trace_text(old, "hash"), trace_text(f, "hash")))
            file_diff(t, old, f, b);
    }
}
