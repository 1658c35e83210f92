/* Why a piece was not found: what comes nearest, and what is different there. */
#include "core/own.h"
#include "tools/edit.h"

#define SHOWN 100 /* bytes of a line in a hint */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}

static size_t line_at(struct str text, size_t pos)
{
    size_t line = 1;
    for (size_t i = 0; i < pos; i++)
        line += text.ptr[i] == '\n';
    return line;
}

static bool holds(struct str text, struct str what, size_t *ret_pos)
{
    const char *at = what.len == 0 ? NULL : memmem(text.ptr, text.len, what.ptr, what.len);
    *ret_pos = at == NULL ? 0 : (size_t)(at - text.ptr);
    return at != NULL;
}

/* ---- the columns of Read, pasted ---- */

/* "   12\t" at the start of the line; the bytes it takes. */
static size_t number_len(struct str line)
{
    size_t i = 0, digits = 0;
    while (i < line.len && line.ptr[i] == ' ')
        i++;
    for (; i < line.len && line.ptr[i] >= '0' && line.ptr[i] <= '9'; i++)
        digits++;
    return digits > 0 && i < line.len && line.ptr[i] == '\t' ? i + 1 : 0;
}

static bool is_numbered(struct str s)
{
    struct str line;
    size_t n = 0;
    for (; str_cut(&s, '\n', &line); n++)
        if (line.len > 0 && number_len(line) == 0)
            return false;
    return n > 0;
}

/* ---- escapes ---- */

static struct str unescape(struct arena *a, struct str s)
{
    char *p = arena_new(a, char, s.len + 1);
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++) {
        char next = i + 1 < s.len ? s.ptr[i + 1] : '\0';
        bool pair = s.ptr[i] == '\\' && next != '\0' && strchr("nt\"'\\", next) != NULL;
        p[n++] = !pair ? s.ptr[i] : next == 'n' ? '\n' : next == 't' ? '\t' : next;
        i += pair;
    }
    return (struct str){ p, n };
}

static struct str escape(struct arena *a, struct str s)
{
    char *p = arena_new(a, char, 2 * s.len + 1);
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if (c == '\n' || c == '\t')
            p[n++] = '\\';
        p[n++] = (char)(c == '\n' ? 'n' : c == '\t' ? 't' : c);
    }
    return (struct str){ p, n };
}

static bool explain_escapes(struct arena *a, struct str text, struct str before, struct err *err)
{
    struct str plain = unescape(a, before), escaped = escape(a, before);
    size_t at;
    if (!str_eq(plain, before) && holds(text, plain, &at)) {
        err_hint(err,
                 "with \\n, \\t, \\\" read as what they stand for it is in line %zu: give line "
                 "ends and quotes as they are, not escaped once more",
                 line_at(text, at));
        return true;
    }
    if (!str_eq(escaped, before) && holds(text, escaped, &at)) {
        err_hint(err,
                 "line %zu of the file has a backslash and a letter where old_string has a "
                 "line end or a tab: escape it once more",
                 line_at(text, at));
        return true;
    }
    return false;
}

/* ---- white space ---- */

static struct str squeeze(struct arena *a, struct str s)
{
    char *p = arena_new(a, char, s.len + 1);
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++)
        if (!is_blank(s.ptr[i]))
            p[n++] = s.ptr[i];
    return (struct str){ p, n };
}

/* Where the nth character that is not blank stands. */
static size_t solid_at(struct str s, size_t nth)
{
    size_t i = 0;
    for (size_t seen = 0; i < s.len; i++)
        if (!is_blank(s.ptr[i]) && seen++ == nth)
            break;
    return i;
}

static struct str blanks_at(struct str s, size_t at)
{
    size_t n = at;
    while (n < s.len && is_blank(s.ptr[n]))
        n++;
    return (struct str){ s.ptr + at, n - at };
}

/* "a line end, 4 spaces" */
static const char *blank_words(struct arena *a, struct str s)
{
    struct buf b = { .arena = a, .max = 120 };
    for (size_t i = 0, n; i < s.len; i += n) {
        for (n = 1; i + n < s.len && s.ptr[i + n] == s.ptr[i]; n++)
            continue;
        const char *one = s.ptr[i] == ' '    ? "space"
                          : s.ptr[i] == '\t' ? "tab"
                          : s.ptr[i] == '\n' ? "line end"
                          : s.ptr[i] == '\r' ? "carriage return"
                                             : "form feed";
        buf_addf(&b, "%s%zu %s%s", i == 0 ? "" : ", ", n, one, n == 1 ? "" : "s");
    }
    return s.len == 0 ? "nothing" : b.ptr ? b.ptr : "a lot of it";
}

/* Both are the same but for blanks: the first run of blanks that differs. */
static void first_difference(struct str text, size_t *at, struct str before, struct str *ret_text,
                             struct str *ret_before)
{
    size_t lead = solid_at(before, 0), ends = 0, j = *at, from = j;
    for (size_t i = 0; i < lead; i++)
        ends += before.ptr[i] == '\n';
    for (; from > 0 && is_blank(text.ptr[from - 1]); from--)
        if (text.ptr[from - 1] == '\n' && ends-- == 0)
            break;
    *ret_before = (struct str){ before.ptr, lead };
    *ret_text = (struct str){ text.ptr + from, j - from };
    if (!str_ends(*ret_text, *ret_before))
        return;
    for (size_t i = lead; i < before.len && j <= text.len;) {
        *ret_before = blanks_at(before, i);
        *ret_text = blanks_at(text, j);
        *at = j;
        bool last = i + ret_before->len == before.len;
        if (last ? !str_starts(*ret_text, *ret_before) : !str_eq(*ret_text, *ret_before))
            return;
        i += ret_before->len + 1;
        j += ret_text->len + 1;
    }
}

static bool explain_blanks(struct arena *a, struct str text, struct str before, struct err *err)
{
    struct str solid = squeeze(a, before), in_text, in_before;
    size_t at;
    if (!holds(squeeze(a, text), solid, &at))
        return false;
    at = solid_at(text, at);
    size_t line = line_at(text, at);
    first_difference(text, &at, before, &in_text, &in_before);
    err_hint(err,
             "but for white space it is there, from line %zu on; in line %zu the file has %s where "
             "old_string has %s",
             line, line_at(text, at), blank_words(a, in_text), blank_words(a, in_before));
    return true;
}

/* ---- the nearest line ---- */

static struct str longest_line(struct str s)
{
    struct str line, best = { s.ptr, 0 };
    while (str_cut(&s, '\n', &line)) {
        line = str_trim(line);
        if (line.len > best.len)
            best = line;
    }
    return best;
}

/* Bytes that are the same at both ends, of a hundred. */
static size_t likeness(struct str x, struct str y)
{
    size_t n = x.len < y.len ? x.len : y.len, head = 0, tail = 0;
    while (head < n && x.ptr[head] == y.ptr[head])
        head++;
    while (tail < n - head && x.ptr[x.len - 1 - tail] == y.ptr[y.len - 1 - tail])
        tail++;
    return x.len + y.len == 0 ? 0 : 200 * (head + tail) / (x.len + y.len);
}

static size_t shown(struct str s)
{
    return s.len < SHOWN ? s.len : SHOWN;
}

static void explain_nearest(struct str text, struct str before, struct err *err)
{
    struct str want = longest_line(before), rest = text, line, best = { 0 };
    size_t best_like = 0, best_line = 0;
    for (size_t n = 1; str_cut(&rest, '\n', &line); n++) {
        size_t like = likeness(str_trim(line), want);
        if (like <= best_like)
            continue;
        best_like = like;
        best_line = n;
        best = str_trim(line);
    }
    if (want.len == 0 || best_like < 40) {
        err_hint(err, "nothing in the file comes near it: Read it again");
        return;
    }
    if (str_eq(best, want)) {
        err_hint(err, "line %zu is \"%.*s\", but the lines around it differ: Read them again",
                 best_line, (int)shown(best), best.ptr);
        return;
    }
    err_hint(err, "nearest is line %zu: \"%.*s\"; old_string has \"%.*s\"", best_line,
             (int)shown(best), best.ptr, (int)shown(want), want.ptr);
}

void edit_explain(struct str text, struct str before, struct err *err)
{
    own_arena tmp = { 0 };
    if (is_numbered(before)) {
        err_hint(err, "old_string has the line numbers of Read in it: leave out the number and the "
                      "tab of each line");
        return;
    }
    if (!explain_escapes(&tmp, text, before, err) && !explain_blanks(&tmp, text, before, err))
        explain_nearest(text, before, err);
}
