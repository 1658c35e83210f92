#include "core/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/str.h"

/* Format into room bytes at dst; text that does not fit ends in "...". */
static void FORMAT(3, 0) text_put(char *dst, size_t room, const char *fmt, va_list args)
{
    int want = vsnprintf(dst, room, fmt, args);
    if (want < 0)
        dst[0] = '\0';
    else if ((size_t)want >= room && room > 4)
        memcpy(dst + room - 4, "...", 4);
    str_plain(dst);
}

enum err_code err_raise_at(struct err *e, const char *file, int line, enum err_code code, int sys,
                           const char *fmt, ...)
{
    va_list args;
    e->code = code;
    e->sys = sys;
    e->file = file;
    e->line = line;
    e->hint[0] = '\0';
    va_start(args, fmt);
    text_put(e->text, sizeof e->text, fmt, args);
    va_end(args);
    size_t len = strlen(e->text);
    if (sys != 0 && len + 1 < sizeof e->text)
        snprintf(e->text + len, sizeof e->text - len, ": %s", strerror(sys));
    return code;
}

enum err_code err_within(struct err *e, const char *fmt, ...)
{
    char inner[ERR_TEXT_MAX];
    va_list args;
    memcpy(inner, e->text, sizeof inner);
    va_start(args, fmt);
    text_put(e->text, sizeof e->text, fmt, args);
    va_end(args);
    size_t len = strlen(e->text);
    int want = snprintf(e->text + len, sizeof e->text - len, ": %s", inner);
    if (want >= 0 && len + (size_t)want >= sizeof e->text)
        memcpy(e->text + sizeof e->text - 4, "...", 4);
    return e->code;
}

enum err_code err_hint(struct err *e, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    text_put(e->hint, sizeof e->hint, fmt, args);
    va_end(args);
    return e->code;
}

const char *err_name(enum err_code code)
{
    switch (code) {
    case OK:
        return "ok";
#define X(id, name, exit_status) \
    case id:                     \
        return name;
        ERR_CODES(X)
#undef X
    }
    return "unknown";
}

int err_exit_status(enum err_code code)
{
    switch (code) {
    case OK:
        return 0;
#define X(id, name, exit_status) \
    case id:                     \
        return exit_status;
        ERR_CODES(X)
#undef X
    }
    return 4;
}
