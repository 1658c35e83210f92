/* core/str.h -- slices in, arena text out.
 *
 * struct str borrows bytes; struct buf builds text in an arena under a ceiling.
 */
#ifndef CORE_STR_H
#define CORE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/arena.h"
#include "core/err.h"

/* A borrowed run of bytes: not NUL-terminated, never freed through this type.
 * {0} is the empty string. Lives as long as what it points into. */
struct str {
    const char *ptr;
    size_t len;
};

#define S(lit) ((struct str){ "" lit, sizeof(lit) - 1 })
#define STR_FMT(s) (int)(s).len, (s).ptr /* for "%.*s" */

static inline struct str str_from(const char *z)
{
    return z ? (struct str){ z, strlen(z) } : (struct str){ NULL, 0 };
}

static inline bool str_eq(struct str a, struct str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static inline bool str_starts(struct str s, struct str head)
{
    return s.len >= head.len && (head.len == 0 || memcmp(s.ptr, head.ptr, head.len) == 0);
}

bool str_ends(struct str s, struct str tail);
struct str str_drop(struct str s, size_t n); /* without its first n bytes */
struct str str_trim(struct str s);           /* without white space at both ends */

/* Take the part of *rest before `sep` and step *rest past it. False when *rest is
 * empty; a last part with no `sep` after it is still a part. */
bool str_cut(struct str *rest, char sep, struct str *ret_part);

struct str str_copy(struct arena *a, struct str s); /* NUL-terminated, too */
const char *str_z(struct arena *a, struct str s);   /* a C string in the arena */
void str_plain(char *z); /* words of others go to a terminal: control characters become blanks, but
                           for line feeds and tabs */
const char *arena_fmt(struct arena *a, const char *fmt, ...) FORMAT(2, 3);

/* Whole decimal number in [min, max]; the text must be that and nothing else. */
MUST_USE
enum err_code str_int(struct str s, int64_t min, int64_t max, int64_t *ret, struct err *err);
MUST_USE
enum err_code str_real(struct str s, double min, double max, double *ret, struct err *err);

/* A growing text in an arena, with a ceiling. Appending past the ceiling sets
 * `full` and drops the bytes; buf_done() is the one place that reports it. */
struct buf {
    struct arena *arena;
    char *ptr;
    size_t len, cap;
    size_t max; /* bytes; what the outside world may make us hold */
    bool full;
};

void buf_add(struct buf *b, struct str s);
void buf_addz(struct buf *b, const char *z);
void buf_addf(struct buf *b, const char *fmt, ...) FORMAT(2, 3);
MUST_USE
enum err_code buf_done(struct buf *b, struct str *ret, struct err *err);

#endif
