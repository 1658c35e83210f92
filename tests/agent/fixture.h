/* The attempts that tests/agent/fixtures/make.py makes, opened. */
#ifndef TESTS_AGENT_FIXTURE_H
#define TESTS_AGENT_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/page.h"
#include "core/json.h"
#include "sys/file.h"

#define FIXTURES CA_SOURCE_DIR "/tests/agent/fixtures/"
#define MAYBE_UNUSED __attribute__((unused))

MAYBE_UNUSED static struct trace fixture(struct arena *a, const char *name)
{
    struct trace t = { 0 };
    struct err err = { 0 };
    if (trace_open(a, path_join(a, FIXTURES, name), &t, &err) != OK)
        fail_msg("%s", err.text);
    return t;
}

MAYBE_UNUSED static struct str fixture_file(struct arena *a, const char *name)
{
    struct str s = { 0 };
    struct err err = { 0 };
    if (file_read(a, path_join(a, FIXTURES, name), 1 << 24, &s, &err) != OK)
        fail_msg("%s", err.text);
    return s;
}

/* A stream into memory. */
struct memory {
    char *ptr;
    size_t len;
    FILE *f;
};

MAYBE_UNUSED static struct memory *memory_open(struct memory *m)
{
    m->f = open_memstream(&m->ptr, &m->len);
    assert_non_null(m->f);
    return m;
}

MAYBE_UNUSED static struct str memory_take(struct arena *a, struct memory *m)
{
    fclose(m->f);
    struct str s = str_copy(a, (struct str){ m->ptr, m->len });
    free(m->ptr);
    *m = (struct memory){ 0 };
    return s;
}

MAYBE_UNUSED static json_t *json_of(struct str s)
{
    json_t *j = NULL;
    struct err err = { 0 };
    if (json_parse(str_trim(s), 1 << 26, &j, &err) != OK)
        fail_msg("%s in: %.*s", err.text, STR_FMT(s));
    return j;
}

MAYBE_UNUSED static void says(struct str s, const char *text)
{
    if (memmem(s.ptr, s.len, text, strlen(text)) == NULL)
        fail_msg("'%.*s' does not say '%s'", STR_FMT(s), text);
}

#endif
