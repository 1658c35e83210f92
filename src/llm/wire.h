/* llm/wire.h -- JSON and text as servers and models really write them.
 *
 * Servers cut UTF-8 and surrogate pairs between two deltas, write NaN, or leave raw control
 * characters in strings. A broken piece is kept as a marker (a private-use character), so that
 * halves still meet after the deltas are joined: wire_json() marks, wire_join() unmarks.
 *
 * Includes: core. Errors: none; what cannot be read is NULL.
 */
#ifndef LLM_WIRE_H
#define LLM_WIRE_H

#include <jansson.h>

#include "core/str.h"

enum mend_for {
    MEND_WIRE, /* a server's object: broken characters become markers, NaN null */
    MEND_ARGS  /* a model's arguments: broken characters become U+FFFD */
};

#define MEND_CONTROL 1u /* a raw control character or a wrong escape in a string */
#define MEND_UNICODE 2u /* half a character, or NUL */
#define MEND_NUMBER 4u  /* NaN, Infinity */

/* `s` with what JSON forbids inside of strings mended; *ret_done is a mask of MEND_*. */
struct str wire_mend(struct arena *a, struct str s, enum mend_for what_for, unsigned *ret_done);

/* Any JSON value, mended if need be (*ret_mended is set, never cleared). New reference, or NULL. */
json_t *wire_json(struct str bytes, bool *ret_mended);

/* Joined text with its markers turned back into characters, valid UTF-8. */
struct str wire_join(struct arena *a, struct str s);

/* Valid UTF-8 without NUL: what breaks that becomes U+FFFD. The same slice when it is clean. */
struct str wire_clean(struct arena *a, struct str s);

/* Members of foreign objects: "" or false when it is not there or of another type. */
struct str wire_text(const json_t *obj, const char *key);
bool wire_int(const json_t *obj, const char *key, int64_t *ret);   /* also digits as text, reals */
bool wire_count(const json_t *obj, const char *key, int64_t *ret); /* within 0 to 2^53 */

bool wire_same(struct str a, const char *b);      /* without regard to ASCII case */
bool wire_holds(struct str s, const char *part);  /* part stands in s, whatever its case */
size_t wire_find(struct str s, const char *part); /* where, or s.len */

#endif
