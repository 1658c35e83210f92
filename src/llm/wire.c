#include "llm/wire.h"

#include <ctype.h>
#include <math.h>
#include <strings.h>

#include "core/own.h"

/* Plane 16 is private use: nobody's text. Half a surrogate pair, and a byte that is not UTF-8. */
#define MARK_HALF 0x10f800u
#define MARK_BYTE 0x10f700u
#define REPLACEMENT "\xef\xbf\xbd"
/* What servers themselves write for a log-probability of minus infinity. */
#define MINUS_INFINITY "-9999.0"

/* Length of the UTF-8 character at p, or 0. */
static size_t utf8_len(const char *at, size_t left)
{
    const unsigned char *p = (const unsigned char *)at;
    size_t n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    if (n == 0 || p[0] > 0xf4 || n > left)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] >= 0xa0) ||
        (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] >= 0x90))
        return 0;
    return n;
}

static void add_char(struct buf *b, uint32_t c)
{
    unsigned char u[4];
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        u[i] = (unsigned char)(0x80 | (c & 0x3f));
    static const unsigned char lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    u[0] = (unsigned char)(lead[n] | c);
    buf_add(b, (struct str){ (const char *)u, n });
}

static bool hex4(struct str s, uint32_t *ret)
{
    uint32_t v = 0;
    if (s.len < 4)
        return false;
    for (size_t i = 0; i < 4; i++) {
        int c = tolower((unsigned char)s.ptr[i]);
        if (!isxdigit(c))
            return false;
        v = v << 4 | (uint32_t)(isdigit(c) ? c - '0' : c - 'a' + 10);
    }
    *ret = v;
    return true;
}

struct mender {
    struct buf out;
    enum mend_for what_for;
    unsigned done;
};

static void broken_char(struct mender *m, uint32_t marker)
{
    m->done |= MEND_UNICODE;
    if (m->what_for == MEND_ARGS)
        buf_addz(&m->out, REPLACEMENT);
    else
        add_char(&m->out, marker);
}

/* A backslash and what it escapes; returns the bytes taken. */
static size_t mend_escape(struct mender *m, struct str s)
{
    uint32_t c, low;
    if (s.len >= 2 && s.ptr[1] == 'u' && hex4(str_drop(s, 2), &c)) {
        struct str after = str_drop(s, 6);
        bool pair = c >= 0xd800 && c < 0xdc00 && str_starts(after, S("\\u")) &&
                    hex4(str_drop(after, 2), &low) && low >= 0xdc00 && low < 0xe000;
        if (c >= 0xd800 && c < 0xe000 && !pair) {
            broken_char(m, MARK_HALF + (c - 0xd800));
            return 6;
        }
        if (c == 0 && m->what_for == MEND_ARGS) {
            broken_char(m, 0);
            return 6;
        }
        buf_add(&m->out, (struct str){ s.ptr, pair ? 12 : 6 });
        return pair ? 12 : 6;
    }
    if (s.len >= 2 && s.ptr[1] != '\0' && strchr("\"\\/bfnrt", s.ptr[1]) != NULL) {
        buf_add(&m->out, (struct str){ s.ptr, 2 });
        return 2;
    }
    m->done |= MEND_CONTROL; /* a backslash that escapes nothing stands for itself */
    buf_addz(&m->out, "\\\\");
    return 1;
}

/* One step inside of a string, not at its end. */
static size_t mend_inside(struct mender *m, struct str s)
{
    unsigned char c = (unsigned char)s.ptr[0];
    if (c == '\\')
        return mend_escape(m, s);
    if (c < 0x20) {
        m->done |= MEND_CONTROL;
        if (c == 0 && m->what_for == MEND_ARGS)
            broken_char(m, 0);
        else
            buf_addf(&m->out, "\\u%04x", c);
        return 1;
    }
    size_t n = utf8_len(s.ptr, s.len);
    if (n == 0) {
        broken_char(m, MARK_BYTE + c);
        return 1;
    }
    buf_add(&m->out, (struct str){ s.ptr, n });
    return n;
}

static size_t mend_outside(struct mender *m, struct str s)
{
    static const char *const words[][2] = { { "NaN", "null" },
                                            { "Infinity", "9999.0" },
                                            { "-Infinity", MINUS_INFINITY } };
    for (size_t i = 0; m->what_for == MEND_WIRE && i < COUNT(words); i++)
        if (str_starts(s, str_from(words[i][0]))) {
            m->done |= MEND_NUMBER;
            buf_addz(&m->out, words[i][1]);
            return strlen(words[i][0]);
        }
    buf_add(&m->out, (struct str){ s.ptr, 1 });
    return 1;
}

struct str wire_mend(struct arena *a, struct str s, enum mend_for what_for, unsigned *ret_done)
{
    struct mender m = { .out = { .arena = a, .max = s.len * 6 + 16 }, .what_for = what_for };
    bool inside = false;
    while (s.len > 0) {
        size_t n = 1;
        if (s.ptr[0] == '"') {
            inside = !inside;
            buf_add(&m.out, S("\""));
        } else {
            n = inside ? mend_inside(&m, s) : mend_outside(&m, s);
        }
        s = str_drop(s, n);
    }
    *ret_done = m.done;
    return (struct str){ m.out.ptr ? m.out.ptr : "", m.out.len };
}

json_t *wire_json(struct str bytes, bool *ret_mended)
{
    const size_t flags = JSON_ALLOW_NUL | JSON_DECODE_ANY;
    json_t *j = json_loadb(bytes.ptr ? bytes.ptr : "", bytes.len, flags, NULL);
    if (j != NULL)
        return j;
    own_arena tmp = { 0 };
    unsigned done = 0;
    struct str mended = wire_mend(&tmp, bytes, MEND_WIRE, &done);
    j = json_loadb(mended.ptr, mended.len, flags | JSON_DECODE_INT_AS_REAL, NULL);
    if (j != NULL)
        *ret_mended = true;
    return j;
}

/* The marker at s, when one stands there: always four bytes. */
static bool marker(struct str s, uint32_t *ret)
{
    const unsigned char *p = (const unsigned char *)s.ptr;
    if (s.len < 4 || p[0] != 0xf4 || utf8_len(s.ptr, s.len) != 4)
        return false;
    uint32_t c = 0x100000u | (uint32_t)(p[1] & 0x3f) << 12 | (uint32_t)(p[2] & 0x3f) << 6 |
                 (uint32_t)(p[3] & 0x3f);
    *ret = c;
    return c >= MARK_BYTE;
}

struct str wire_join(struct arena *a, struct str s)
{
    struct buf out = { .arena = a, .max = s.len + 4 };
    while (s.len > 0) {
        uint32_t c, low;
        if (!marker(s, &c)) {
            buf_add(&out, (struct str){ s.ptr, 1 });
            s = str_drop(s, 1);
            continue;
        }
        s = str_drop(s, 4);
        if (c < MARK_HALF) {
            char byte = (char)(c - MARK_BYTE);
            buf_add(&out, (struct str){ &byte, 1 });
        } else if (c - MARK_HALF < 0x400 && marker(s, &low) && low >= MARK_HALF + 0x400) {
            add_char(&out, 0x10000u + ((c - MARK_HALF) << 10) + (low - MARK_HALF - 0x400));
            s = str_drop(s, 4);
        } else {
            buf_addz(&out, REPLACEMENT);
        }
    }
    return wire_clean(a, (struct str){ out.ptr, out.len });
}

struct str wire_clean(struct arena *a, struct str s)
{
    size_t good = 0, n;
    while (good < s.len && s.ptr[good] != '\0' && (n = utf8_len(s.ptr + good, s.len - good)) > 0)
        good += n;
    if (good == s.len)
        return s;
    struct buf out = { .arena = a, .max = s.len * 3 + 3 };
    buf_add(&out, (struct str){ s.ptr, good });
    for (s = str_drop(s, good); s.len > 0; s = str_drop(s, n)) {
        n = s.ptr[0] == '\0' ? 0 : utf8_len(s.ptr, s.len);
        buf_add(&out, n > 0 ? (struct str){ s.ptr, n } : S(REPLACEMENT));
        n = n > 0 ? n : 1;
    }
    return (struct str){ out.ptr, out.len };
}

struct str wire_text(const json_t *obj, const char *key)
{
    const json_t *j = json_object_get(obj, key);
    return (struct str){ json_string_value(j), json_string_length(j) };
}

bool wire_int(const json_t *obj, const char *key, int64_t *ret)
{
    const json_t *j = json_object_get(obj, key);
    struct err err;
    if (json_is_integer(j))
        *ret = (int64_t)json_integer_value(j);
    else if (json_is_real(j) && fabs(json_real_value(j)) < 9e18)
        *ret = (int64_t)json_real_value(j);
    else if (!json_is_string(j) ||
             str_int(wire_text(obj, key), INT64_MIN, INT64_MAX, ret, &err) != OK)
        return false;
    return true;
}

bool wire_count(const json_t *obj, const char *key, int64_t *ret)
{
    const int64_t max = (int64_t)1 << 53;
    int64_t v;
    if (!wire_int(obj, key, &v))
        return false;
    *ret = v < 0 ? 0 : v > max ? max : v;
    return true;
}

bool wire_same(struct str a, const char *b)
{
    return a.len == strlen(b) && (a.len == 0 || strncasecmp(a.ptr, b, a.len) == 0);
}

size_t wire_find(struct str s, const char *part)
{
    size_t n = strlen(part);
    if (n == 0)
        return 0;
    for (size_t i = 0; i + n <= s.len; i++)
        if (strncasecmp(s.ptr + i, part, n) == 0)
            return i;
    return s.len;
}

bool wire_holds(struct str s, const char *part)
{
    return part[0] == '\0' || wire_find(s, part) < s.len;
}
