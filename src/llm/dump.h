/* llm/dump.h -- a request's JSON as bytes: what json_dumps(JSON_COMPACT) gives, in a third of
 * its time for the long texts that requests are made of.
 *
 * Includes: core.
 */
#ifndef LLM_DUMP_H
#define LLM_DUMP_H

#include <jansson.h>

/* Heap, owned by the caller; NULL: no memory. */
char *json_bytes(const json_t *j);

#endif
