/* A tools session knows what the model has read, its list, the shell's folder. None of it is in a
 * file; a new session is told by the calls that would have told the old one. */
#include "agent/episode_int.h"
#include "agent/parts.h"
#include "core/json.h"

static void tell(struct episode *e, const char *tool, json_t *args)
{
    own_arena tmp = { 0 };
    tools_call(e->tools, &tmp, str_from(tool), args);
    json_decref(args);
}

static bool is_as_seen(const struct transcript *t, const char *path, const char *hash)
{
    size_t i;
    const json_t *f;
    json_array_foreach(t->files, i, f)
    {
        if (str_eq(member_text(f, "path"), str_from(path)))
            return str_eq(member_text(f, "hash"), str_from(hash));
    }
    return false;
}

static void cwd_restore(struct episode *e)
{
    own_arena tmp = { 0 };
    struct buf b = { .arena = &tmp, .max = 16384 };
    buf_addz(&b, "cd '");
    for (const char *c = e->t.cwd; *c != '\0'; c++)
        buf_add(&b, *c == '\'' ? S("'\\''") : (struct str){ c, 1 });
    buf_addz(&b, "'");
    if (!b.full)
        tell(e, "Bash", json_pack("{s:s}", "command", b.ptr));
}

void episode_session_restore(struct episode *e)
{
    const char *path;
    json_t *hash;
    struct err ignored = { 0 };
    json_object_foreach(e->t.seen, path, hash)
    {
        /* What has changed since the model saw it is to be read again, as before. */
        if (is_as_seen(&e->t, path, json_string_value(hash)))
            tell(e, "Read", json_pack("{s:s, s:i}", "file_path", path, "limit", 1));
    }
    json_t *todos = NULL;
    if (e->t.todos != NULL &&
        json_parse(str_from(e->t.todos), (size_t)8 << 20, &todos, &ignored) == OK)
        tell(e, "TodoWrite", todos);
    if (e->t.cwd != NULL)
        cwd_restore(e);
}
