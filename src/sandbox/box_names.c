/* Names inside and outside. Without a root of its own a box sees everything where it really is. */
#include <stdlib.h>

#include "core/own.h"
#include "sandbox/box_int.h"

#define TEXT_MAX ((size_t)64 << 20)

struct pair {
    struct str from, to;
};

static bool ends_path(struct str s, size_t at)
{
    return at == s.len || strchr("/:,", s.ptr[at]) != NULL;
}

/* A letter, a digit or the like: the name goes on. */
static bool goes_on(struct str s, size_t at)
{
    return at < s.len && ((s.ptr[at] | 32) >= 'a' ? (s.ptr[at] | 32) <= 'z'
                                                  : (s.ptr[at] >= '0' && s.ptr[at] <= '9'));
}

/* The longest of the pairs' names that stands at s[i] as whole parts of a path. */
static const struct pair *match(const struct pair *p, size_t n, struct str s, size_t i, bool path)
{
    const struct pair *best = NULL;
    for (size_t k = 0; k < n; k++) {
        size_t len = p[k].from.len;
        if (len == 0 || len > s.len - i || memcmp(s.ptr + i, p[k].from.ptr, len) != 0)
            continue;
        bool whole = path ? ends_path(s, i + len) : !goes_on(s, i + len);
        if (whole && (best == NULL || len > best->from.len))
            best = &p[k];
    }
    return best;
}

static bool begins_path(struct str s, size_t i)
{
    if (i == 0 || strchr("=:,", s.ptr[i - 1]) != NULL)
        return true;
    return i == 2 && s.ptr[0] == '-' && (s.ptr[1] == 'I' || s.ptr[1] == 'L');
}

/* Every name of the pairs in s is replaced; with `path` only where a path begins. */
static struct str replace(struct arena *a, const struct pair *p, size_t n, struct str s, bool path)
{
    struct buf b = { .arena = a, .max = TEXT_MAX };
    for (size_t i = 0; i < s.len;) {
        bool may = s.ptr[i] == '/' && (!path || begins_path(s, i));
        const struct pair *m = may ? match(p, n, s, i, path) : NULL;
        buf_add(&b, m ? m->to : (struct str){ s.ptr + i, 1 });
        i += m ? m->from.len : 1;
    }
    struct str out = { 0 };
    struct err ignored = { 0 };
    return buf_done(&b, &out, &ignored) == OK ? out : s;
}

/* inside -> outside for each mount, and /tmp last. */
static struct pair *pairs(struct arena *a, const struct box_spec *spec, const char *tmp,
                          bool outward)
{
    struct pair *p = arena_new(a, struct pair, spec->n_mounts + 1);
    for (size_t i = 0; i <= spec->n_mounts; i++) {
        bool last = i == spec->n_mounts;
        const char *out = last ? tmp : spec->mounts[i].from;
        const char *in = last ? "/tmp" : spec->mounts[i].at;
        struct str inside = str_from(in ? in : out), outside = str_from(out);
        p[i] = outward ? (struct pair){ inside, outside } : (struct pair){ outside, inside };
    }
    return p;
}

static const char *const *list_outside(struct arena *a, const struct pair *p, size_t n,
                                       const char *const *list)
{
    size_t len = 0;
    while (list[len] != NULL)
        len++;
    const char **out = arena_new(a, const char *, len + 1);
    for (size_t i = 0; i < len; i++)
        out[i] = str_z(a, replace(a, p, n, str_from(list[i]), true));
    return out;
}

struct box_spec names_outside(struct arena *a, const struct box_spec *spec, const char *tmp)
{
    struct box_spec s = *spec;
    size_t n = spec->n_mounts + 1;
    const struct pair *p = pairs(a, spec, tmp, true);
    struct box_mount *m = arena_new(a, struct box_mount, n);
    for (size_t i = 0; i < spec->n_mounts; i++) {
        m[i] = spec->mounts[i];
        m[i].at = NULL;
    }
    m[n - 1] = (struct box_mount){ tmp, NULL, true, false };
    s.mounts = m;
    s.n_mounts = n;
    s.argv = list_outside(a, p, n, spec->argv);
    s.env = list_outside(a, p, n, spec->env);
    s.dir = str_z(a, replace(a, p, n, str_from(spec->dir ? spec->dir : "/tmp"), true));
    return s;
}

struct str names_inside(struct arena *a, const struct box_spec *spec, const char *tmp,
                        struct str text)
{
    return replace(a, pairs(a, spec, tmp, false), spec->n_mounts + 1, text, false);
}
