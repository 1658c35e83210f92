#include "tools/text.h"

#define REPLACEMENT S("\xef\xbf\xbd")
#define CUT_REACH 400 /* bytes in which a line's end is looked for */

size_t text_char(struct str s)
{
    const unsigned char *c = (const unsigned char *)s.ptr;
    if (s.len == 0)
        return 0;
    if (c[0] < 0x80)
        return 1;
    size_t n = c[0] >= 0xf0 ? 4 : c[0] >= 0xe0 ? 3 : 2;
    if (c[0] < 0xc2 || c[0] > 0xf4 || s.len < n)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((c[i] & 0xc0) != 0x80)
            return 0;
    bool bad = (c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xed && c[1] > 0x9f) ||
               (c[0] == 0xf0 && c[1] < 0x90) || (c[0] == 0xf4 && c[1] > 0x8f);
    return bad ? 0 : n;
}

/* Of C0, DEL, and C1 as UTF-8. */
static bool is_control(struct str s)
{
    unsigned char c = (unsigned char)s.ptr[0];
    bool c1 = c == 0xc2 && s.len > 1 && (unsigned char)s.ptr[1] < 0xa0;
    return c1 || (c < 0x20 && c != '\t' && c != '\n') || c == 0x7f;
}

void text_plain(struct buf *b, struct str s)
{
    size_t from = 0, i = 0;
    while (i < s.len) {
        struct str rest = str_drop(s, i);
        size_t n = text_char(rest);
        if (n > 0 && !is_control(rest)) {
            i += n;
            continue;
        }
        buf_add(b, (struct str){ s.ptr + from, i - from });
        buf_add(b, REPLACEMENT);
        i += n > 0 ? n : 1;
        from = i;
    }
    buf_add(b, str_drop(s, from));
}

void text_line(struct buf *b, struct str line)
{
    if (line.len <= TEXT_LINE_MAX) {
        text_plain(b, line);
        return;
    }
    size_t n = TEXT_LINE_MAX;
    while (n > TEXT_LINE_MAX - 4 && ((unsigned char)line.ptr[n] & 0xc0) == 0x80)
        n--;
    text_plain(b, (struct str){ line.ptr, n });
    buf_addf(b, "... [%zu more bytes in this line]", line.len - n);
}

/* Bytes of the escape sequence at the start of s, which begins with ESC. */
static size_t escape_len(struct str s)
{
    size_t i = 2;
    if (s.len < 2)
        return s.len;
    if (s.ptr[1] == '[') {
        while (i < s.len && (s.ptr[i] < 0x40 || s.ptr[i] > 0x7e) && i < 64)
            i++;
        return i < s.len ? i + 1 : s.len;
    }
    if (s.ptr[1] != ']')
        return 2;
    while (i < s.len && s.ptr[i] != '\a' && s.ptr[i] != '\x1b' && i < 1024)
        i++;
    bool st = i + 1 < s.len && s.ptr[i] == '\x1b' && s.ptr[i + 1] == '\\';
    return i + (st ? 2 : i < s.len);
}

static struct str without_escapes(struct arena *a, struct str s)
{
    struct buf b = { .arena = a, .max = s.len };
    const char *esc;
    while (s.len > 0 && (esc = memchr(s.ptr, '\x1b', s.len)) != NULL) {
        size_t before = (size_t)(esc - s.ptr);
        buf_add(&b, (struct str){ s.ptr, before });
        s = str_drop(s, before);
        s = str_drop(s, escape_len(s));
    }
    buf_add(&b, s);
    return (struct str){ b.ptr ? b.ptr : "", b.len };
}

/* What is left of a line on a terminal where '\r' goes back to its start: the last part that is
 * not empty. */
static struct str last_writing(struct str line)
{
    struct str rest = line, part, last = { line.ptr, 0 };
    while (str_cut(&rest, '\r', &part))
        if (part.len > 0)
            last = part;
    return last;
}

void text_terminal(struct buf *b, struct str s)
{
    own_arena tmp = { 0 };
    struct str rest = without_escapes(&tmp, s), line;
    while (rest.len > 0) {
        bool ended = memchr(rest.ptr, '\n', rest.len) != NULL;
        str_cut(&rest, '\n', &line);
        text_line(b, last_writing(line));
        if (ended)
            buf_add(b, S("\n"));
    }
}

bool text_binary(struct str s)
{
    return s.len > 0 && memchr(s.ptr, '\0', s.len < 8192 ? s.len : 8192) != NULL;
}

struct str text_head(struct str s, size_t n)
{
    if (s.len <= n)
        return s;
    struct str head = { s.ptr, n };
    size_t reach = n < CUT_REACH ? n : CUT_REACH;
    const char *end = memrchr(head.ptr + n - reach, '\n', reach);
    if (end != NULL)
        head.len = (size_t)(end - head.ptr) + 1;
    return head;
}

struct str text_tail(struct str s, size_t n)
{
    if (s.len <= n)
        return s;
    struct str tail = str_drop(s, s.len - n);
    size_t reach = n < CUT_REACH ? n : CUT_REACH;
    const char *end = memchr(tail.ptr, '\n', reach);
    return end != NULL ? str_drop(tail, (size_t)(end - tail.ptr) + 1) : tail;
}

size_t text_lines(struct str s)
{
    size_t n = 0;
    struct str part;
    while (str_cut(&s, '\n', &part))
        n++;
    return n;
}
