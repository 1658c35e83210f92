#include "core/str.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

bool str_ends(struct str s, struct str tail)
{
    return s.len >= tail.len && str_eq(str_drop(s, s.len - tail.len), tail);
}

struct str str_drop(struct str s, size_t n)
{
    n = n < s.len ? n : s.len;
    if (n == 0) /* {0} has no bytes to step over, not even none */
        return s;
    return (struct str){ s.ptr + n, s.len - n };
}

struct str str_trim(struct str s)
{
    while (s.len > 0 && isspace((unsigned char)s.ptr[0]))
        s = str_drop(s, 1);
    while (s.len > 0 && isspace((unsigned char)s.ptr[s.len - 1]))
        s.len--;
    return s;
}

bool str_cut(struct str *rest, char sep, struct str *ret_part)
{
    if (rest->len == 0)
        return false;
    const char *at = memchr(rest->ptr, sep, rest->len);
    size_t len = at ? (size_t)(at - rest->ptr) : rest->len;
    *ret_part = (struct str){ rest->ptr, len };
    *rest = str_drop(*rest, at ? len + 1 : len);
    return true;
}

struct str str_copy(struct arena *a, struct str s)
{
    char *p = arena_new(a, char, s.len + 1);
    if (s.len > 0)
        memcpy(p, s.ptr, s.len);
    return (struct str){ p, s.len };
}

const char *str_z(struct arena *a, struct str s)
{
    return str_copy(a, s).ptr;
}

void str_plain(char *z)
{
    for (unsigned char *c = (unsigned char *)z; *c != '\0'; c++) {
        bool c1 = c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0; /* as UTF-8 */
        if (c1 || (*c < ' ' && *c != '\n' && *c != '\t') || *c == 0x7f)
            *c = ' ';
        if (c1)
            c[1] = ' ';
    }
}

const char *arena_fmt(struct arena *a, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int want = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    size_t room = want > 0 ? (size_t)want + 1 : 1;
    char *p = arena_new(a, char, room);
    vsnprintf(p, room, fmt, again);
    va_end(again);
    return p;
}

enum err_code str_int(struct str s, int64_t min, int64_t max, int64_t *ret, struct err *err)
{
    bool minus = s.len > 0 && s.ptr[0] == '-';
    struct str digits = str_drop(s, minus);
    int64_t value = 0;
    if (digits.len == 0)
        return err_raise(err, ERR_USAGE, "'%.*s' is not a whole number", STR_FMT(s));
    for (size_t i = 0; i < digits.len; i++) {
        int d = digits.ptr[i] - '0';
        if (d < 0 || d > 9)
            return err_raise(err, ERR_USAGE, "'%.*s' is not a whole number", STR_FMT(s));
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, minus ? -d : d, &value))
            return err_raise(err, ERR_USAGE, "'%.*s' is out of range", STR_FMT(s));
    }
    if (value < min || value > max)
        return err_raise(err, ERR_USAGE, "%lld is not between %lld and %lld", (long long)value,
                         (long long)min, (long long)max);
    *ret = value;
    return OK;
}

enum err_code str_real(struct str s, double min, double max, double *ret, struct err *err)
{
    own_arena tmp = { 0 };
    const char *z = str_z(&tmp, s);
    char *end = NULL;
    double value = strtod(z, &end);
    if (s.len == 0 || *end != '\0' || end != z + s.len || !isfinite(value))
        return err_raise(err, ERR_USAGE, "'%.*s' is not a number", STR_FMT(s));
    if (!(value >= min && value <= max))
        return err_raise(err, ERR_USAGE, "%g is not between %g and %g", value, min, max);
    *ret = value;
    return OK;
}

/* Room for `more` bytes and a NUL; false (and full) past the ceiling. */
static bool buf_room(struct buf *b, size_t more)
{
    if (b->full || more > b->max - b->len) {
        b->full = true;
        return false;
    }
    size_t need = b->len + more + 1;
    if (need <= b->cap)
        return true;
    size_t cap = b->cap ? b->cap * 2 : 256;
    while (cap < need)
        cap *= 2;
    char *bigger = arena_new(b->arena, char, cap);
    if (b->len > 0)
        memcpy(bigger, b->ptr, b->len);
    b->ptr = bigger;
    b->cap = cap;
    return true;
}

void buf_add(struct buf *b, struct str s)
{
    if (s.len == 0 || !buf_room(b, s.len))
        return;
    memcpy(b->ptr + b->len, s.ptr, s.len);
    b->len += s.len;
    b->ptr[b->len] = '\0';
}

void buf_addz(struct buf *b, const char *z)
{
    buf_add(b, str_from(z));
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int want = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (want > 0 && buf_room(b, (size_t)want)) {
        vsnprintf(b->ptr + b->len, (size_t)want + 1, fmt, again);
        b->len += (size_t)want;
    }
    va_end(again);
}

enum err_code buf_done(struct buf *b, struct str *ret, struct err *err)
{
    if (b->full)
        return err_raise(err, ERR_LIMIT, "text of more than %zu bytes", b->max);
    *ret = (struct str){ b->ptr ? b->ptr : "", b->len };
    return OK;
}
