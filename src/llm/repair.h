/* llm/repair.h -- the arguments of a tool call as one JSON object.
 *
 * Models write JSON by hand. Steps, in order, each named in *ret_done: as it stands; control
 * characters and half characters in strings; what stands behind the first whole value; an object
 * in a string; then, by the tool's schema, lists and objects in strings, strings chopped into
 * lists, numbers and truth values in strings.
 *
 * Includes: core. Errors: ERR_FORMAT with line and column of what cannot be read, ERR_LIMIT.
 */
#ifndef LLM_REPAIR_H
#define LLM_REPAIR_H

#include <jansson.h>

#include "core/str.h"

#define REPAIRS(X)                    \
    X(REPAIR_EMPTY, "empty", 0)       \
    X(REPAIR_CONTROL, "control", 1)   \
    X(REPAIR_UNICODE, "unicode", 2)   \
    X(REPAIR_TAIL, "tail", 3)         \
    X(REPAIR_NESTED, "nested", 4)     \
    X(REPAIR_UNQUOTED, "unquoted", 5) \
    X(REPAIR_JOINED, "joined", 6)     \
    X(REPAIR_COERCED, "coerced", 7)

enum repair {
#define X(id, name, bit) id = 1 << (bit),
    REPAIRS(X)
#undef X
};

/* The name of one bit; NULL for none of them. */
const char *repair_name(unsigned bit);

/* `schema` may be NULL. *ret is a new reference to an object; *ret_done a mask of enum repair. */
MUST_USE
enum err_code repair_args(struct str args, const json_t *schema, size_t max, json_t **ret,
                          unsigned *ret_done, struct err *err);

#endif
