#include "tools/edit.h"

#define LINES_NAMED 10

bool edit_is_crlf(struct str text)
{
    size_t ends = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] != '\n')
            continue;
        if (i == 0 || text.ptr[i - 1] != '\r')
            return false;
        ends++;
    }
    return ends > 0;
}

/* "\n" -> "\r\n", those that are there already are left. */
static struct str with_crlf(struct arena *a, struct str s)
{
    size_t n = 0, len = 0;
    for (size_t i = 0; i < s.len; i++)
        n += s.ptr[i] == '\n';
    char *p = arena_new(a, char, s.len + n + 1);
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] == '\n' && (i == 0 || s.ptr[i - 1] != '\r'))
            p[len++] = '\r';
        p[len++] = s.ptr[i];
    }
    return (struct str){ p, len };
}

static const char *find(struct str text, size_t from, struct str what)
{
    return memmem(text.ptr + from, text.len - from, what.ptr, what.len);
}

/* Places that do not overlap, and the lines of the first few. */
static size_t count(struct arena *a, struct str text, struct str what, struct str *ret_lines)
{
    struct buf b = { .arena = a, .max = 300 };
    size_t n = 0, line = 1, counted = 0;
    const char *at;
    for (size_t from = 0; (at = find(text, from, what)) != NULL; n++) {
        size_t pos = (size_t)(at - text.ptr);
        for (; n < LINES_NAMED && counted < pos; counted++)
            line += text.ptr[counted] == '\n';
        if (n < LINES_NAMED)
            buf_addf(&b, "%s%zu", n == 0 ? "" : ", ", line);
        else if (n == LINES_NAMED)
            buf_addz(&b, ", ...");
        from = pos + what.len;
    }
    *ret_lines = (struct str){ b.ptr ? b.ptr : "", b.len };
    return n;
}

static enum err_code put(struct arena *a, struct str text, const struct edit *e, size_t n,
                         struct edited *ret, struct err *err)
{
    size_t grown = 0, keep = text.len - n * e->before.len;
    if (__builtin_mul_overflow(n, e->after.len, &grown) || grown > EDIT_TEXT_MAX ||
        keep + grown > EDIT_TEXT_MAX)
        return err_raise(err, ERR_LIMIT, "the text would have more than %zu bytes", EDIT_TEXT_MAX);
    struct edited r = { .n = n };
    char *p = arena_new(a, char, keep + grown + 1);
    size_t from = 0, len = 0;
    for (size_t i = 0; i < n; i++) {
        size_t pos = (size_t)(find(text, from, e->before) - text.ptr);
        memcpy(p + len, text.ptr + from, pos - from);
        len += pos - from;
        if (i == 0)
            r.from = len;
        if (e->after.len > 0)
            memcpy(p + len, e->after.ptr, e->after.len);
        len += e->after.len;
        from = pos + e->before.len;
    }
    r.to = len;
    memcpy(p + len, text.ptr + from, text.len - from);
    r.text = (struct str){ p, len + text.len - from };
    *ret = r;
    return OK;
}

enum err_code edit_apply(struct arena *a, struct str text, const struct edit *edit,
                         struct edited *ret, struct err *err)
{
    struct edit e = *edit;
    struct str lines;
    if (e.before.len == 0)
        return err_raise(err, ERR_USAGE, "old_string is empty: it must name what is replaced");
    if (str_eq(e.before, e.after))
        return err_raise(err, ERR_USAGE, "old_string and new_string are the same");
    if (text.len == 0)
        return err_raise(err, ERR_USAGE, "old_string was not found: the file is empty");
    if (edit_is_crlf(text)) {
        e.before = with_crlf(a, e.before);
        e.after = with_crlf(a, e.after);
    }
    size_t n = count(a, text, e.before, &lines);
    if (n == 0) {
        err_raise(err, ERR_USAGE, "old_string was not found");
        edit_explain(text, e.before, err);
        return err->code;
    }
    if (n > 1 && !e.all) {
        err_raise(err, ERR_USAGE, "old_string was found %zu times, in lines %.*s", n,
                  STR_FMT(lines));
        return err_hint(err,
                        "give more of the lines around the one that is meant, or set replace_all");
    }
    return put(a, text, &e, n, ret, err);
}
