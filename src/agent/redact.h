/* agent/redact.h -- values of keys that must not stand in a log.
 *
 * Memory: the arena's. Errors: ERR_SYSTEM, ERR_LIMIT for a key's file.
 */
#ifndef AGENT_REDACT_H
#define AGENT_REDACT_H

#include <jansson.h>

#include "core/arena.h"
#include "core/err.h"
#include "core/str.h"

#define SECRET_MIN 8 /* bytes: what is shorter would be found in harmless words */

struct secrets {
    struct str *value;
    size_t n;
};

/* The values of the environment's variables whose names end in KEY, TOKEN, SECRET or PASSWORD, of
 * the variables named, and the first lines of the files named. Both lists end in NULL, or are. */
MUST_USE
enum err_code secrets_gather(struct arena *a, const char *const *names, const char *const *files,
                             struct secrets *ret, struct err *err);

/* Every text in `j` that holds a value has [key] in its place. */
void redact(const struct secrets *s, json_t *j);

#endif
