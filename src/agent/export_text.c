/* Texts of models and programs, made safe to look at. */
#include "agent/export.h"
#include "tools/text.h"

static uint32_t code_of(struct str s, size_t n)
{
    const unsigned char *c = (const unsigned char *)s.ptr;
    static const unsigned char head[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
    uint32_t code = c[0] & head[n];
    for (size_t i = 1; i < n; i++)
        code = code << 6 | (c[i] & 0x3f);
    return code;
}

/* Marks of direction, joiners and other characters of no width, separators of lines, tags. */
static bool is_hidden(uint32_t c)
{
    return (c >= 0x80 && c < 0xa0) || c == 0xad || c == 0x61c || c == 0x180e ||
           (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
           (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) ||
           (c >= 0xe0000 && c <= 0xe0fff);
}

static void picture(struct buf *b, unsigned char c) /* U+2400 and up */
{
    unsigned char utf8[] = { 0xe2, 0x90, (unsigned char)(0x80 + (c == 0x7f ? 0x21 : c)) };
    buf_add(b, (struct str){ (const char *)utf8, sizeof utf8 });
}

void export_plain(struct buf *b, struct str s)
{
    size_t from = 0, i = 0;
    while (i < s.len) {
        struct str rest = str_drop(s, i);
        size_t n = text_char(rest);
        uint32_t code = n > 0 ? code_of(rest, n) : 0;
        bool control = (code < 0x20 && code != '\t' && code != '\n') || code == 0x7f;
        if (n > 0 && !control && !is_hidden(code)) {
            i += n;
            continue;
        }
        buf_add(b, (struct str){ s.ptr + from, i - from });
        if (n == 0)
            buf_add(b, S("\xef\xbf\xbd"));
        else if (control)
            picture(b, (unsigned char)code);
        else
            buf_addf(b, "<U+%04X>", code);
        i += n > 0 ? n : 1;
        from = i;
    }
    buf_add(b, str_drop(s, from));
}

void export_line(struct buf *b, struct str s, size_t n)
{
    own_arena tmp = { 0 };
    s = str_trim(s);
    bool cut = s.len > n;
    while (cut && n > 0 && ((unsigned char)s.ptr[n] & 0xc0) == 0x80)
        n--;
    char *copy = (char *)(uintptr_t)str_z(&tmp, (struct str){ s.ptr, cut ? n : s.len });
    size_t len = cut ? n : s.len;
    for (size_t i = 0; i < len; i++)
        if (copy[i] == '\n' || copy[i] == '\t' || copy[i] == '\r')
            copy[i] = ' ';
    export_plain(b, (struct str){ copy, len });
    if (cut)
        buf_addz(b, "...");
}

void export_html(struct buf *b, struct str s)
{
    own_arena tmp = { 0 };
    struct buf plain = { .arena = &tmp, .max = SIZE_MAX / 4 };
    export_plain(&plain, s);
    size_t from = 0;
    for (size_t i = 0; i < plain.len; i++) {
        const char *as = NULL;
        switch (plain.ptr[i]) {
        case '<':
            as = "&lt;";
            break;
        case '>':
            as = "&gt;";
            break;
        case '&':
            as = "&amp;";
            break;
        case '"':
            as = "&quot;";
            break;
        case '\'':
            as = "&#39;";
            break;
        default:
            continue;
        }
        buf_add(b, (struct str){ plain.ptr + from, i - from });
        buf_addz(b, as);
        from = i + 1;
    }
    if (plain.len > from)
        buf_add(b, (struct str){ plain.ptr + from, plain.len - from });
}
