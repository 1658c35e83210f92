#include "agent/keep.h"

#include <math.h>

#include "agent/objects.h"
#include "agent/parts.h"
#include "core/json.h"
#include "sys/file.h"
#include "workspace/workspace.h"

#define KEPT_MAX ((size_t)4 << 20)

static bool right(const json_t *verdict)
{
    struct str status = member_text(verdict, "status");
    return str_eq(status, S("pass")) || str_eq(status, S("undecided"));
}

static double time_of(const json_t *verdict)
{
    const json_t *arm = json_object_get(json_object_get(verdict, "time_us"), "candidate");
    double us = json_number_value(json_object_get(arm, "median"));
    return us > 0 ? us : INFINITY;
}

bool verdict_better(const json_t *a, const json_t *b)
{
    if (!right(a))
        return false;
    return b == NULL || !right(b) || time_of(a) < time_of(b);
}

enum err_code keep_open(struct keep *k, const char *out, struct err *err)
{
    own_arena tmp = { 0 };
    struct str text;
    *k = (struct keep){ 0 };
    k->dir = path_join(&k->arena, out, "best");
    const char *path = path_join(&tmp, k->dir, "verdict.json");
    if (!path_exists(path))
        return OK;
    if (file_read(&tmp, path, KEPT_MAX, &text, err) == OK &&
        json_parse(text, KEPT_MAX, &k->best, err) == OK)
        return OK;
    keep_close(k);
    return err_within(err, "the best candidate so far");
}

void keep_close(struct keep *k)
{
    json_decref(k->best);
    arena_fini(&k->arena);
    *k = (struct keep){ 0 };
}

/* A name out of a log: it must lead nowhere else. */
static bool is_plain(struct str path)
{
    struct str part;
    bool plain = path.len > 0 && path.ptr[0] != '/';
    while (plain && str_cut(&path, '/', &part))
        plain = part.len > 0 && !str_eq(part, S(".")) && !str_eq(part, S(".."));
    return plain;
}

static enum err_code file_lay(const char *dir, const char *objects, const json_t *file,
                              struct err *err)
{
    own_arena tmp = { 0 };
    struct str bytes, path = member_text(file, "path");
    if (!is_plain(path))
        return err_raise(err, ERR_FORMAT, "the candidate's file '%.*s'",
                         (int)(path.len < 80 ? path.len : 80), path.ptr);
    const char *to = path_join(&tmp, dir, str_z(&tmp, path));
    const char *folder = arena_fmt(&tmp, "%.*s", (int)(strrchr(to, '/') - to), to);
    if (objects_get(&tmp, objects, member_text(file, "hash"), &bytes, err) != OK ||
        dir_make(folder, 0755, err) != OK)
        return err->code;
    return file_write(to, bytes, 0644, err);
}

static enum err_code folder_lay(const char *dir, const char *objects, const json_t *eval,
                                const json_t *kept, struct err *err)
{
    own_arena tmp = { 0 };
    size_t i;
    const json_t *file;
    json_array_foreach(json_object_get(eval, "files"), i, file)
    {
        if (file_lay(dir, objects, file, err) != OK)
            return err->code;
    }
    own_mem char *text = json_dumps(kept, JSON_INDENT(2));
    if (text == NULL)
        return err_raise(err, ERR_SYSTEM, "no memory for a verdict");
    return file_write(path_join(&tmp, dir, "verdict.json"), str_from(text), 0644, err);
}

enum err_code keep_offer(struct keep *k, int attempt, const json_t *eval, const char *objects,
                         struct err *err)
{
    own_arena tmp = { 0 };
    const json_t *verdict = json_object_get(eval, "verdict");
    if (!verdict_better(verdict, k->best ? json_object_get(k->best, "verdict") : NULL))
        return OK;
    own_json kept = json_pack("{s:i, s:O, s:O}", "attempt", attempt, "candidate",
                              json_object_get(eval, "candidate"), "verdict", verdict);
    const char *fresh = arena_fmt(&tmp, "%s.new", k->dir);
    if (kept == NULL)
        return err_raise(err, ERR_FORMAT, "an examiner's answer without a candidate");
    if (dir_remove(fresh, err) != OK || dir_make(fresh, 0755, err) != OK ||
        folder_lay(fresh, objects, eval, kept, err) != OK ||
        workspace_place(fresh, k->dir, err) != OK)
        return err_within(err, "keep the best candidate");
    json_decref(k->best);
    k->best = own_json_take(&kept);
    return OK;
}
