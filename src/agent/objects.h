/* agent/objects.h -- contents of files by their SHA-256, in one folder; never changed.
 *
 * Errors: ERR_SYSTEM; ERR_FORMAT for an object whose content is not what its name says.
 */
#ifndef AGENT_OBJECTS_H
#define AGENT_OBJECTS_H

#include "core/arena.h"
#include "core/sha256.h"

#define OBJECT_BYTES_MAX ((size_t)4 << 20)

/* Nothing is written where the object is there. */
MUST_USE
enum err_code objects_put(const char *dir, struct str bytes, char ret_hash[SHA256_HEX],
                          struct err *err);

/* `hash` may come from a log: what is no hash is refused. */
MUST_USE
enum err_code objects_get(struct arena *a, const char *dir, struct str hash, struct str *ret,
                          struct err *err);

#endif
