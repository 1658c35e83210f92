/* tools/edit.h -- replace a piece of a text by another: exact, unique, or told why not.
 *
 * Pure: texts in, text out. Nothing is guessed: what does not stand in the text exactly is
 * refused, with the place that comes nearest and what is different there. Where the text has
 * CRLF throughout, the pieces' line ends are taken for its own.
 */
#ifndef TOOLS_EDIT_H
#define TOOLS_EDIT_H

#include "core/arena.h"
#include "core/err.h"
#include "core/str.h"

#define EDIT_TEXT_MAX ((size_t)20 << 20) /* bytes of a result */

struct edit {
    struct str before, after; /* old_string, new_string */
    bool all;                 /* every place */
};

struct edited {
    struct str text;
    size_t n;        /* places */
    size_t from, to; /* bytes of `text`: from the first change to the end of the last */
};

/* ERR_USAGE with a hint; ERR_LIMIT. The result is in the arena. */
MUST_USE
enum err_code edit_apply(struct arena *a, struct str text, const struct edit *e, struct edited *ret,
                         struct err *err);

/* Every line of it ends in CRLF. */
bool edit_is_crlf(struct str text);

/* ---- edit_why.c ---- */

/* `before` does not stand in `text`: the hint of err says what comes near. */
void edit_explain(struct str text, struct str before, struct err *err);

#endif
