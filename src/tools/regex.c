#define PCRE2_CODE_UNIT_WIDTH 8
#include "tools/regex.h"

#include <pcre2.h>

#define PATTERN_BYTES_MAX 2000
#define STEPS_MAX 2000000 /* of a match: some 10 ms */
#define HEAP_KIB_MAX 20000
#define STACK_BYTES ((size_t)32 << 10) /* of the JIT: to begin with, and at most */
#define STACK_BYTES_MAX ((size_t)1 << 20)

enum err_code regex_make(struct str pattern, unsigned flags, struct regex *ret, struct err *err)
{
    uint32_t options = PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C;
    int code = 0;
    size_t at = 0;
    if (pattern.len == 0 || pattern.len > PATTERN_BYTES_MAX)
        return err_raise(err, ERR_USAGE, "the pattern has %zu bytes, wanted 1 to %d", pattern.len,
                         PATTERN_BYTES_MAX);
    if (flags & REGEX_ANY_CASE)
        options |= PCRE2_CASELESS;
    if (flags & REGEX_MANY_LINES)
        options |= PCRE2_DOTALL | PCRE2_MULTILINE;
    pcre2_code *c = pcre2_compile((PCRE2_SPTR)pattern.ptr, pattern.len, options, &code, &at, NULL);
    if (c == NULL) {
        unsigned char why[200] = "";
        pcre2_get_error_message(code, why, sizeof why);
        err_raise(err, ERR_USAGE, "the pattern is wrong at character %zu: %s", at + 1,
                  (const char *)why);
        return err_hint(
            err, "to find ( ) [ ] { } * + ? . | \\ ^ $ themselves, put a backslash before them");
    }
    pcre2_match_data *d = pcre2_match_data_create(1, NULL);
    pcre2_match_context *m = pcre2_match_context_create(NULL);
    pcre2_jit_stack *stack = NULL;
    /* Where it cannot, the interpreter runs it. */
    if (pcre2_jit_compile(c, PCRE2_JIT_COMPLETE) == 0 && m != NULL) {
        stack = pcre2_jit_stack_create(STACK_BYTES, STACK_BYTES_MAX, NULL);
        pcre2_jit_stack_assign(m, NULL, stack);
    }
    *ret = (struct regex){ c, d, m, stack };
    if (d == NULL || m == NULL) {
        regex_fini(ret);
        return err_raise(err, ERR_SYSTEM, "no memory for a pattern");
    }
    pcre2_set_match_limit(m, STEPS_MAX);
    pcre2_set_heap_limit(m, HEAP_KIB_MAX);
    return OK;
}

enum regex_found regex_find(const struct regex *re, struct str text, size_t from, struct span *ret)
{
    const char *bytes = text.ptr ? text.ptr : "";
    int rc = pcre2_match(re->code, (PCRE2_SPTR)bytes, text.len, from, 0, re->data, re->limits);
    if (rc < 0)
        return rc == PCRE2_ERROR_NOMATCH ? REGEX_NO : REGEX_GAVE_UP;
    const size_t *at = pcre2_get_ovector_pointer(re->data);
    *ret = (struct span){ at[0] < at[1] ? at[0] : at[1], at[1] };
    return REGEX_YES;
}

void regex_fini(struct regex *re)
{
    pcre2_code_free(re->code);
    pcre2_match_data_free(re->data);
    pcre2_match_context_free(re->limits);
    pcre2_jit_stack_free(re->stack);
    *re = (struct regex){ 0 };
}
