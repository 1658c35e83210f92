#include "agent/redact.h"

#include <stdlib.h>
#include <unistd.h>

#include "sys/file.h"

#define SECRETS_MAX 64
#define KEY_FILE_MAX ((size_t)64 << 10)

static void secret_add(struct arena *a, struct secrets *s, struct str value)
{
    value = str_trim(value);
    if (value.len >= SECRET_MIN && s->n < SECRETS_MAX)
        s->value[s->n++] = str_copy(a, value);
}

static bool names_secret(struct str name)
{
    static const char *const ends[] = { "KEY", "TOKEN", "SECRET", "PASSWORD" };
    for (size_t i = 0; i < COUNT(ends); i++)
        if (str_ends(name, str_from(ends[i])))
            return true;
    return false;
}

enum err_code secrets_gather(struct arena *a, const char *const *names, const char *const *files,
                             struct secrets *ret, struct err *err)
{
    struct secrets s = { .value = arena_new(a, struct str, SECRETS_MAX) };
    struct str text, line;
    for (; names != NULL && *names != NULL; names++)
        secret_add(a, &s, str_from(getenv(*names)));
    for (; files != NULL && *files != NULL; files++) {
        if (file_read(a, *files, KEY_FILE_MAX, &text, err) != OK)
            return err->code;
        if (str_cut(&text, '\n', &line))
            secret_add(a, &s, line);
    }
    for (char **e = environ; *e != NULL; e++) {
        struct str value = str_from(*e), name;
        if (str_cut(&value, '=', &name) && names_secret(name))
            secret_add(a, &s, value);
    }
    *ret = s;
    return OK;
}

static const char *find(struct str in, struct str what)
{
    return in.len < what.len ? NULL : memmem(in.ptr, in.len, what.ptr, what.len);
}

static void text_redact(struct str secret, json_t *j)
{
    own_arena tmp = { 0 };
    struct str rest = { json_string_value(j), json_string_length(j) };
    const char *at = find(rest, secret);
    if (at == NULL)
        return;
    struct buf b = { .arena = &tmp, .max = rest.len * 2 + 16 };
    for (; at != NULL; at = find(rest, secret)) {
        size_t n = (size_t)(at - rest.ptr);
        buf_add(&b, (struct str){ rest.ptr, n });
        buf_addz(&b, "[key]");
        rest = str_drop(rest, n + secret.len);
    }
    buf_add(&b, rest);
    json_string_setn(j, b.ptr, b.len);
}

void redact(const struct secrets *s, json_t *j)
{
    size_t i;
    const char *key;
    json_t *member;
    if (s->n == 0)
        return;
    for (i = 0; json_is_string(j) && i < s->n; i++)
        text_redact(s->value[i], j);
    json_array_foreach(j, i, member) redact(s, member);
    json_object_foreach(j, key, member) redact(s, member);
}
