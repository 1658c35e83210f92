/* core/json.h -- reading JSON of foreign origin without surprises.
 *
 * A thin layer over jansson: parse under a limit, get a member of a wanted type or
 * an error that names it. Writing uses jansson directly (json_pack, json_dumps).
 */
#ifndef CORE_JSON_H
#define CORE_JSON_H

#include <jansson.h>

#include "core/err.h"
#include "core/own.h"
#include "core/str.h"

/* At most max bytes; duplicate keys and trailing text are refused.
 * *ret is owned by the caller (own_json). ERR_FORMAT, ERR_LIMIT. */
MUST_USE
enum err_code json_parse(struct str bytes, size_t max, json_t **ret, struct err *err);

/* Members that must be there with that type: ERR_FORMAT names the key. Text lives
 * as long as `obj`. */
MUST_USE
enum err_code json_get_text(const json_t *obj, const char *key, struct str *ret, struct err *err);
MUST_USE
enum err_code json_get_int(const json_t *obj, const char *key, int64_t *ret, struct err *err);
MUST_USE
enum err_code json_get_real(const json_t *obj, const char *key, double *ret,
                            struct err *err); /* an integer is a real, too */
MUST_USE
enum err_code json_get_flag(const json_t *obj, const char *key, bool *ret, struct err *err);
MUST_USE
enum err_code json_get_list(const json_t *obj, const char *key, json_t **ret,
                            struct err *err); /* borrowed */
MUST_USE
enum err_code json_get_map(const json_t *obj, const char *key, json_t **ret,
                           struct err *err); /* borrowed */

#endif
