/* tools/regex.h -- regular expressions of others: PCRE2, with a bound on every match.
 *
 * Compiled by its JIT where the machine has one; a pattern that backtracks without end stops
 * at a limit of steps. Bytes that are no UTF-8 match nothing and stop nothing.
 */
#ifndef TOOLS_REGEX_H
#define TOOLS_REGEX_H

#include "core/err.h"
#include "core/str.h"

#define REGEX_PLAIN 0u
#define REGEX_ANY_CASE 1u
#define REGEX_MANY_LINES 2u /* '.' matches line ends, ^ and $ each line's */

struct regex {
    void *code, *data, *limits, *stack; /* owned; no stack: no JIT here */
};

struct span {
    size_t from, to;
};

enum regex_found { REGEX_NO, REGEX_YES, REGEX_GAVE_UP };

/* ERR_USAGE: where the pattern is wrong, and why. */
MUST_USE
enum err_code regex_make(struct str pattern, unsigned flags, struct regex *ret, struct err *err);
/* The first match at or after byte `from`. */
enum regex_found regex_find(const struct regex *re, struct str text, size_t from, struct span *ret);
void regex_fini(struct regex *re);

#define own_regex __attribute__((cleanup(regex_fini))) struct regex

#endif
