/* One episode for a test: a workspace, a session over it, calls as a model makes them. */
#ifndef TESTS_TOOLS_EPISODE_H
#define TESTS_TOOLS_EPISODE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/json.h"
#include "core/own.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "tools/tools.h"

#define MAYBE_UNUSED __attribute__((unused))

struct episode {
    struct arena a;
    const char *top, *dir; /* dir: the workspace, in top */
    struct tools *t;
    struct tool_result last;
};

/* A file of the workspace, made from outside. */
MAYBE_UNUSED static void lay(struct episode *e, const char *name, const char *text)
{
    struct err err = { 0 };
    const char *path = path_join(&e->a, e->dir, name);
    const char *folder = arena_fmt(&e->a, "%.*s", (int)(strrchr(path, '/') - path), path);
    if (dir_make(folder, 0755, &err) != OK || file_write(path, str_from(text), 0644, &err) != OK)
        fail_msg("%s", err.text);
}

/* What it holds; NULL: it is not there. */
MAYBE_UNUSED static const char *held(struct episode *e, const char *name)
{
    struct err err = { 0 };
    struct str text;
    const char *path = path_join(&e->a, e->dir, name);
    return file_read(&e->a, path, 64 << 20, &text, &err) == OK ? text.ptr : NULL;
}

MAYBE_UNUSED static void holds(struct episode *e, const char *name, const char *text)
{
    const char *now = held(e, name);
    if (now == NULL || strcmp(now, text) != 0)
        fail_msg("%s holds '%s', wanted '%s'", name, now ? now : "nothing", text);
}

MAYBE_UNUSED static struct episode episode_new(void)
{
    struct episode e = { 0 };
    struct err err = { 0 };
    if (dir_temp(&e.a, "/tmp", "ca-tools", &e.top, &err) != OK)
        fail_msg("%s", err.text);
    chmod(e.top, 0755);
    e.dir = path_join(&e.a, e.top, "work");
    assert_int_equal(mkdir(e.dir, 0755), 0);
    return e;
}

MAYBE_UNUSED static void episode_open(struct episode *e, struct tools_spec spec)
{
    struct err err = { 0 };
    spec.workspace = e->dir;
    if (tools_open(&spec, &e->t, &err) != OK)
        fail_msg("%s", err.text);
}

MAYBE_UNUSED static struct episode episode_start(void)
{
    struct episode e = episode_new();
    episode_open(&e, (struct tools_spec){ 0 });
    return e;
}

MAYBE_UNUSED static void episode_end(struct episode *e)
{
    struct err err = { 0 };
    tools_close(e->t);
    assert_int_equal(dir_remove(e->top, &err), OK);
    arena_fini(&e->a);
}

MAYBE_UNUSED static const char *call(struct episode *e, const char *name, const char *args)
{
    e->last = tools_call_text(e->t, &e->a, str_from(name), str_from(args));
    return str_z(&e->a, e->last.text);
}

/* The call does what it should, and its text holds all of `want` (parts cut by '|'). */
MAYBE_UNUSED static const char *expect(struct episode *e, bool failed, const char *name,
                                       const char *args, const char *want)
{
    const char *text = call(e, name, args);
    struct str rest = str_from(want), part;
    if (e->last.failed != failed)
        fail_msg("%s %s: %s: %s", name, args, failed ? "was not refused" : "was refused", text);
    while (str_cut(&rest, '|', &part))
        if (strstr(text, str_z(&e->a, part)) == NULL)
            fail_msg("%s %s said '%s', wanted '%.*s'", name, args, text, STR_FMT(part));
    return text;
}

#define does(e, name, args, want) expect((e), false, (name), (args), (want))
#define refuses(e, name, args, want) expect((e), true, (name), (args), (want))

#endif
