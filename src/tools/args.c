/* Arguments of a call against the row's parameters. */
#include <math.h>

#include "tools/tool.h"

static const char *kind_name(const struct tool_param *p)
{
    static const char *const names[] = { [PARAM_TEXT] = "text",
                                         [PARAM_INT] = "a whole number",
                                         [PARAM_FLAG] = "true or false",
                                         [PARAM_CHOICE] = "one of its words",
                                         [PARAM_LIST] = "a list of objects" };
    return names[p->kind];
}

static const char *json_kind(const json_t *j)
{
    static const char *const names[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "a list",  [JSON_STRING] = "text",
        [JSON_INTEGER] = "a number", [JSON_REAL] = "a number", [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",      [JSON_NULL] = "null"
    };
    return names[json_typeof(j)];
}

static const struct tool_param *param_find(const struct tool_param *p, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(p[i].name, name) == 0)
            return &p[i];
    return NULL;
}

/* "file_path, old_string, ..." */
static struct str names_of(struct arena *a, const struct tool_param *p, size_t n)
{
    struct buf b = { .arena = a, .max = 512 };
    for (size_t i = 0; i < n; i++)
        buf_addf(&b, "%s%s", i == 0 ? "" : ", ", p[i].name);
    return n == 0 ? S("no parameters") : (struct str){ b.ptr, b.len };
}

static enum err_code text_check(const struct tool_param *p, const json_t *v, struct err *err)
{
    int64_t max = p->max > 0 ? p->max : PARAM_BYTES_MAX;
    size_t len = json_string_length(v);
    if (memchr(json_string_value(v), '\0', len) != NULL)
        return err_raise(err, ERR_USAGE, "'%s' holds a NUL character", p->name);
    if (len > (size_t)max)
        return err_raise(err, ERR_USAGE, "'%s' has %zu bytes, the most is %lld", p->name, len,
                         (long long)max);
    if (len < (size_t)p->min)
        return err_raise(err, ERR_USAGE, "'%s' is empty", p->name);
    return OK;
}

static enum err_code int_check(const struct tool_param *p, const json_t *v, struct err *err)
{
    int64_t max = p->max > 0 ? p->max : INT64_MAX;
    double real = json_number_value(v);
    if (json_is_real(v) && (!(fabs(real) < 9e15) || real != floor(real)))
        return err_raise(err, ERR_USAGE, "'%s' is %g, wanted a whole number", p->name, real);
    int64_t value = json_is_real(v) ? (int64_t)real : (int64_t)json_integer_value(v);
    if (value < p->min || value > max)
        return err_raise(err, ERR_USAGE, "'%s' is %lld, wanted %lld to %lld", p->name,
                         (long long)value, (long long)p->min, (long long)max);
    return OK;
}

static enum err_code choice_check(const struct tool_param *p, const json_t *v, struct err *err)
{
    own_arena tmp = { 0 };
    struct buf b = { .arena = &tmp, .max = 512 };
    for (size_t i = 0; p->choices[i] != NULL; i++) {
        if (strcmp(p->choices[i], json_string_value(v)) == 0)
            return OK;
        buf_addf(&b, "%s%s", i == 0 ? "" : ", ", p->choices[i]);
    }
    return err_raise(err, ERR_USAGE, "'%s' is '%.60s', wanted one of: %.*s", p->name,
                     json_string_value(v), STR_FMT(((struct str){ b.ptr, b.len })));
}

static enum err_code object_check(const struct tool_param *p, size_t n, const json_t *v,
                                  struct err *err);

static enum err_code list_check(const struct tool_param *p, const json_t *v, struct err *err)
{
    size_t n = json_array_size(v), max = (size_t)(p->max > 0 ? p->max : PARAM_ITEMS_MAX);
    if (n > max || n < (size_t)p->min)
        return err_raise(err, ERR_USAGE, "'%s' has %zu items, wanted %lld to %zu", p->name, n,
                         (long long)p->min, max);
    for (size_t i = 0; i < n; i++)
        if (object_check(p->item, p->n_item, json_array_get(v, i), err) != OK)
            return err_within(err, "'%s', item %zu", p->name, i + 1);
    return OK;
}

static bool kind_fits(const struct tool_param *p, const json_t *v)
{
    switch (p->kind) {
    case PARAM_TEXT:
    case PARAM_CHOICE:
        return json_is_string(v);
    case PARAM_INT:
        return json_is_number(v);
    case PARAM_FLAG:
        return json_is_boolean(v);
    case PARAM_LIST:
        return json_is_array(v);
    }
    return false;
}

static enum err_code value_check(const struct tool_param *p, const json_t *v, struct err *err)
{
    if (!kind_fits(p, v)) {
        err_raise(err, ERR_USAGE, "'%s' is %s, wanted %s", p->name, json_kind(v), kind_name(p));
        if (p->kind == PARAM_LIST && json_is_string(v))
            return err_hint(err, "give the list itself, not its JSON as text");
        return err->code;
    }
    switch (p->kind) {
    case PARAM_TEXT:
        return text_check(p, v, err);
    case PARAM_CHOICE:
        return choice_check(p, v, err);
    case PARAM_INT:
        return int_check(p, v, err);
    case PARAM_LIST:
        return list_check(p, v, err);
    case PARAM_FLAG:
        return OK;
    }
    return OK;
}

static enum err_code object_check(const struct tool_param *p, size_t n, const json_t *v,
                                  struct err *err)
{
    own_arena tmp = { 0 };
    const char *key;
    json_t *value;
    if (!json_is_object(v))
        return err_raise(err, ERR_USAGE, "%s instead of an object with %.*s",
                         v ? json_kind(v) : "nothing", STR_FMT(names_of(&tmp, p, n)));
    json_object_foreach((json_t *)(uintptr_t)v, key, value)
    {
        const struct tool_param *one = param_find(p, n, key);
        if (one == NULL)
            return err_raise(err, ERR_USAGE, "there is no parameter '%.60s'; it takes %.*s", key,
                             STR_FMT(names_of(&tmp, p, n)));
        /* null for "left out" is what some servers make of it. */
        if (json_is_null(value) && !one->required)
            continue;
        if (value_check(one, value, err) != OK)
            return err->code;
    }
    for (size_t i = 0; i < n; i++)
        if (p[i].required && json_object_get(v, p[i].name) == NULL)
            return err_raise(err, ERR_USAGE, "'%s' is missing: %s", p[i].name, p[i].help);
    return OK;
}

enum err_code tool_args_check(const struct tool *row, const json_t *args, struct err *err)
{
    if (object_check(row->param, row->n_param, args, err) != OK)
        return err_within(err, "%s", row->name);
    return OK;
}

bool arg_given(const json_t *args, const char *name)
{
    const json_t *v = json_object_get(args, name);
    return v != NULL && !json_is_null(v);
}

struct str arg_text(const json_t *args, const char *name, struct str absent)
{
    const json_t *v = json_object_get(args, name);
    return json_is_string(v) ? (struct str){ json_string_value(v), json_string_length(v) } : absent;
}

int64_t arg_int(const json_t *args, const char *name, int64_t absent)
{
    const json_t *v = json_object_get(args, name);
    if (json_is_real(v))
        return (int64_t)json_real_value(v);
    return json_is_integer(v) ? (int64_t)json_integer_value(v) : absent;
}

bool arg_flag(const json_t *args, const char *name, bool absent)
{
    const json_t *v = json_object_get(args, name);
    return json_is_boolean(v) ? json_is_true(v) : absent;
}
