/* attacks/rows.h -- the candidates of a folder, each with the verdict that it must get.
 *
 * First line of a source: `// want: wrong tampered`. The second says what it is: `// hacks 8, 24:
 * text` for an attack (the numbers of the catalogue that docs/trust.md explains), `// honest,
 * beside hacks 8: text` for its twin, `// fault: text` for a plain mistake. A .py is the
 * model_new.py of a torch candidate (`# want: `), its binding the .cpp of its name or the one that
 * all share.
 */
#ifndef ATTACKS_ROWS_H
#define ATTACKS_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "task/candidate.h"

struct row {
    const char *name;
    struct candidate c;
    struct str wanted, what; /* of the first two lines */
};

/* All sources of `dir`, sorted by name; in the arena. */
MUST_USE
enum err_code rows_read(struct arena *a, enum target target, const char *dir, struct row **ret,
                        size_t *ret_n, struct err *err);

bool row_wanted(const struct row *r, const char *status);

/* For grade_options: who must run into the limit is not waited for as long as others are. */
int64_t row_first_ms(const struct row *r);

#endif
