/* tools/glob.h -- does a path fit a pattern: * ? [a-z] within a name, ** for any folders, {a,b}.
 *
 * Pure. The work for one path is bounded by pattern times path: no pattern makes it hang.
 */
#ifndef TOOLS_GLOB_H
#define TOOLS_GLOB_H

#include "core/arena.h"
#include "core/err.h"
#include "core/str.h"

#define GLOB_PARTS 32
#define GLOB_WAYS 64 /* that braces spread into */

struct glob {
    struct glob_way {
        struct str part[GLOB_PARTS];
        size_t n;
    } * way;
    size_t n;
};

/* anywhere: a pattern without '/' is for names in any folder. In the arena. ERR_USAGE. */
MUST_USE
enum err_code glob_make(struct arena *a, struct str pattern, bool anywhere, struct glob *ret,
                        struct err *err);
bool glob_fits(const struct glob *g, struct str path);

#endif
