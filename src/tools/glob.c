#include "tools/glob.h"

#define PATTERN_BYTES_MAX 1000

/* [abc], [a-z], [!a]: *ret_len is what it takes of the pattern, 0 when it is no class. */
static bool class_fits(struct str p, char c, size_t *ret_len)
{
    size_t i = 1;
    bool not = p.len > 1 && (p.ptr[1] == '!' || p.ptr[1] == '^'), in = false;
    i += not ;
    for (size_t first = i; i < p.len && (p.ptr[i] != ']' || i == first); i++) {
        char low = p.ptr[i], high = low;
        if (i + 2 < p.len && p.ptr[i + 1] == '-' && p.ptr[i + 2] != ']') {
            high = p.ptr[i + 2];
            i += 2;
        }
        in = in ||
             ((unsigned char)c >= (unsigned char)low && (unsigned char)c <= (unsigned char)high);
    }
    *ret_len = i < p.len ? i + 1 : 0;
    return in != not ;
}

/* One character of the name against the pattern at its start: what it takes of it, 0: no. */
static size_t one_fits(struct str p, char c)
{
    size_t len = 0;
    if (p.len == 0)
        return 0;
    if (p.ptr[0] == '?')
        return 1;
    if (p.ptr[0] == '\\' && p.len > 1)
        return p.ptr[1] == c ? 2 : 0;
    if (p.ptr[0] == '[') {
        bool in = class_fits(p, c, &len);
        if (len > 0)
            return in ? len : 0;
    }
    return p.ptr[0] == c ? 1 : 0;
}

/* Back to the last star only: what an earlier one could take the last one can take, too. */
static bool name_fits(struct str pattern, struct str name)
{
    struct str p = pattern, s = name, star_p = { 0 }, star_s = { 0 };
    bool star = false;
    while (s.len > 0) {
        if (p.len > 0 && p.ptr[0] == '*') {
            star = true;
            p = star_p = str_drop(p, 1);
            star_s = s;
            continue;
        }
        size_t n = one_fits(p, s.ptr[0]);
        if (n > 0) {
            p = str_drop(p, n);
            s = str_drop(s, 1);
            continue;
        }
        if (!star)
            return false;
        star_s = str_drop(star_s, 1);
        s = star_s;
        p = star_p;
    }
    while (p.len > 0 && p.ptr[0] == '*')
        p = str_drop(p, 1);
    return p.len == 0;
}

static bool is_any(struct str part)
{
    return str_eq(part, S("**"));
}

/* row[i]: the first i parts of the pattern fit the names so far. */
static bool way_fits(const struct glob_way *w, struct str path)
{
    bool row[GLOB_PARTS + 1] = { true }, next[GLOB_PARTS + 1];
    struct str name;
    for (size_t i = 0; i < w->n && is_any(w->part[i]); i++)
        row[i + 1] = true;
    while (str_cut(&path, '/', &name)) {
        next[0] = false;
        for (size_t i = 0; i < w->n; i++) {
            bool any = is_any(w->part[i]);
            next[i + 1] =
                any ? row[i + 1] || row[i] || next[i] : row[i] && name_fits(w->part[i], name);
        }
        memcpy(row, next, sizeof row);
    }
    return row[w->n];
}

bool glob_fits(const struct glob *g, struct str path)
{
    for (size_t i = 0; i < g->n; i++)
        if (way_fits(&g->way[i], path))
            return true;
    return false;
}

/* The first brace that closes: {from, to} of its inside. */
static bool brace_find(struct str s, size_t *from, size_t *to)
{
    size_t depth = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] == '\\')
            i++;
        else if (s.ptr[i] == '{' && depth++ == 0)
            *from = i + 1;
        else if (s.ptr[i] == '}' && depth > 0 && --depth == 0) {
            *to = i;
            return true;
        }
    }
    return false;
}

static enum err_code way_add(struct str s, struct glob *g, struct err *err)
{
    struct glob_way *w = &g->way[g->n];
    struct str part;
    if (g->n == GLOB_WAYS)
        return err_raise(err, ERR_USAGE, "the braces make more than %d patterns", GLOB_WAYS);
    while (str_cut(&s, '/', &part)) {
        if (part.len == 0 || str_eq(part, S(".")))
            continue;
        if (str_eq(part, S("..")))
            return err_raise(err, ERR_USAGE, "a pattern cannot go up (..): give path instead");
        if (w->n == GLOB_PARTS)
            return err_raise(err, ERR_USAGE, "the pattern has more than %d parts", GLOB_PARTS);
        w->part[w->n++] = part;
    }
    g->n++;
    return OK;
}

static enum err_code spread(struct arena *a, struct str s, size_t depth, struct glob *g,
                            struct err *err)
{
    size_t from = 0, to = 0, level = 0, start;
    if (depth > 8)
        return err_raise(err, ERR_USAGE, "the pattern has more than 8 braces");
    if (!brace_find(s, &from, &to))
        return way_add(s, g, err);
    start = from;
    for (size_t i = from; i <= to; i++) {
        char c = s.ptr[i];
        if (i == to || (c == ',' && level == 0)) {
            const char *one = arena_fmt(a, "%.*s%.*s%.*s", (int)(from - 1), s.ptr, (int)(i - start),
                                        s.ptr + start, (int)(s.len - to - 1), s.ptr + to + 1);
            if (spread(a, str_from(one), depth + 1, g, err) != OK)
                return err->code;
            start = i + 1;
        }
        level += c == '{';
        level -= c == '}' && i < to;
    }
    return OK;
}

enum err_code glob_make(struct arena *a, struct str pattern, bool anywhere, struct glob *ret,
                        struct err *err)
{
    struct glob g = { .way = arena_new(a, struct glob_way, GLOB_WAYS + 1) };
    if (pattern.len == 0 || pattern.len > PATTERN_BYTES_MAX)
        return err_raise(err, ERR_USAGE, "a pattern has 1 to %d bytes", PATTERN_BYTES_MAX);
    if (anywhere && memchr(pattern.ptr, '/', pattern.len) == NULL)
        pattern = str_from(arena_fmt(a, "**/%.*s", STR_FMT(pattern)));
    if (spread(a, pattern, 0, &g, err) != OK)
        return err->code;
    *ret = g;
    return OK;
}
