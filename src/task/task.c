#include "task/task.h"

#include "core/own.h"
#include "sys/file.h"

#define NAME_MAX_BYTES 100 /* fits a verdict's task_name and a folder's name */

static enum err_code name_of(struct arena *a, const char *path, const char **ret, struct err *err)
{
    struct str name = str_from(path);
    const char *slash = strrchr(path, '/');
    if (slash != NULL)
        name = str_from(slash + 1);
    if (!str_ends(name, S(".py")) || name.len < 4) {
        err_raise(err, ERR_TASK, "'%s' is no task: its name does not end in .py", path);
        return err_hint(err, "a task is a Python file with Model, get_inputs and get_init_inputs");
    }
    name.len -= 3;
    if (name.len > NAME_MAX_BYTES)
        return err_raise(err, ERR_LIMIT, "the name of '%s' has more than %d bytes", path,
                         NAME_MAX_BYTES);
    *ret = str_z(a, name);
    return OK;
}

enum err_code task_read(struct arena *a, const char *path, struct task *ret, struct err *err)
{
    struct task t = { .path = str_z(a, str_from(path)) };
    if (name_of(a, path, &t.name, err) != OK)
        return err->code;
    if (file_read(a, path, TASK_SOURCE_MAX, &t.source, err) != OK)
        return err_within(err, "task");
    if (str_trim(t.source).len == 0)
        return err_raise(err, ERR_TASK, "task '%s' is empty", path);

    /* The source travels as JSON text. */
    own_json as_text = json_stringn(t.source.ptr, t.source.len);
    if (as_text == NULL || memchr(t.source.ptr, '\0', t.source.len) != NULL)
        return err_raise(err, ERR_TASK, "task '%s' is not UTF-8 text", path);
    hash_parts(&t.source, 1, t.hash);
    *ret = t;
    return OK;
}
