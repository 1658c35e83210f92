/* One call: find the row, check the arguments, run, tell. */
#include <poll.h>
#include <stdlib.h>

#include "core/json.h"
#include "core/own.h"
#include "sys/clock.h"
#include "tools/gather.h"
#include "tools/tools_int.h"

#define TEXT_MAX ((size_t)8 << 20) /* what a function may say before it is cut to head and tail */
#define ARGS_MAX ((size_t)8 << 20)

#define BUILTIN (SHELL_TOOLS + FILE_TOOLS + FIND_TOOLS + 1)

static const struct tool *builtin(size_t i)
{
    if (i < SHELL_TOOLS)
        return &shell_tools[i];
    i -= SHELL_TOOLS;
    if (i < FILE_TOOLS)
        return &file_tools[i];
    i -= FILE_TOOLS;
    return i < FIND_TOOLS ? &find_tools[i] : &todo_tool;
}

/* The i-th row of all; NULL past the end. */
static const struct tool *row_at(const struct tools *t, size_t i, void **ret_context)
{
    *ret_context = NULL;
    if (i < BUILTIN)
        return builtin(i);
    i -= BUILTIN;
    for (size_t s = 0; s < t->spec.n_sets; s++) {
        const struct tool_set *set = &t->spec.set[s];
        *ret_context = set->context;
        if (i < set->n)
            return &set->row[i];
        i -= set->n;
    }
    return NULL;
}

static const struct tool *row_named(const struct tools *t, struct str name, void **ret_context)
{
    const struct tool *row;
    for (size_t i = 0; (row = row_at(t, i, ret_context)) != NULL; i++)
        if (str_eq(name, str_from(row->name)))
            return row;
    return NULL;
}

const struct tool *tools_find(const struct tools *t, struct str name)
{
    void *context;
    return row_named(t, name, &context);
}

size_t tools_builtin(struct tool ret[TOOLS_BUILTIN])
{
    _Static_assert(BUILTIN == TOOLS_BUILTIN, "the header counts them");
    for (size_t i = 0; i < BUILTIN; i++)
        ret[i] = *builtin(i);
    return BUILTIN;
}

json_t *tools_schema(const struct tools *t, enum tool_shape shape)
{
    json_t *all = json_array();
    const struct tool *row;
    void *context;
    for (size_t i = 0; (row = row_at(t, i, &context)) != NULL; i++)
        json_array_append_new(all, tool_describe(row, shape));
    return all;
}

/* ---- ending ---- */

static void tell_error(struct tool_call *c, const struct err *e)
{
    struct buf b = { .arena = c->arena, .max = TEXT_MAX };
    c->failed = true;
    text_plain(&b, str_from(e->text[0] != '\0' ? e->text : err_name(e->code)));
    if (e->hint[0] != '\0') {
        buf_addz(&b, "\n");
        text_plain(&b, str_from(e->hint));
    }
    c->text = b;
}

static void settle(struct tool_call *c, enum err_code code, const struct err *e)
{
    if (code == OK)
        return;
    if (c->pending && c->row->drop != NULL)
        c->row->drop(c);
    c->pending = false;
    tell_error(c, e);
}

/* What is too long becomes head and tail, the whole goes into a file. */
static struct str told(struct tool_call *c)
{
    struct str all = { c->text.ptr ? c->text.ptr : "", c->text.len };
    struct buf b = { .arena = c->arena, .max = TEXT_MAX };
    if (c->text.full)
        buf_addf(&b, "[the end is missing: more than %zu bytes]\n", TEXT_MAX);
    if (c->whole || all.len <= TEXT_RESULT_MAX) {
        text_plain(&b, all);
    } else {
        struct gather g;
        gather_init(&g, c->tools, c->arena);
        gather_add(&g, all);
        gather_tell(&g, &b, false);
    }
    return (struct str){ b.ptr ? b.ptr : "", b.len };
}

/* ---- the steps ---- */

static void start(struct tool_call *c, struct str name)
{
    struct err err = { 0 };
    void *context = NULL;
    c->row = row_named(c->tools, name, &context);
    c->context = context;
    if (c->row == NULL) {
        own_arena tmp = { 0 };
        struct buf names = { .arena = &tmp, .max = 800 };
        const struct tool *row;
        for (size_t i = 0; (row = row_at(c->tools, i, &context)) != NULL; i++)
            buf_addf(&names, "%s%s", i == 0 ? "" : ", ", row->name);
        err_raise(&err, ERR_USAGE, "there is no tool '%.*s'; there are %s",
                  (int)(name.len < 60 ? name.len : 60), name.ptr, names.ptr);
        tell_error(c, &err);
        return;
    }
    enum err_code code = tool_args_check(c->row, c->args, &err);
    if (code == OK)
        code = c->row->run(c, &err);
    settle(c, code, &err);
}

struct tool_call *tool_call_begin(struct tools *t, struct arena *a, struct str name,
                                  const json_t *args)
{
    struct tool_call *c = arena_new(a, struct tool_call, 1);
    *c = (struct tool_call){ .tools = t,
                             .args = args,
                             .arena = a,
                             .text = { .arena = a, .max = TEXT_MAX },
                             .until_ms = INT64_MAX };
    if (t->call != NULL) {
        struct err err = { 0 };
        err_raise(&err, ERR_STATE, "another call of this session still runs");
        tell_error(c, &err);
        return c;
    }
    t->call = c;
    tools_pump(t);
    start(c, name);
    return c;
}

bool tool_call_done(const struct tool_call *c)
{
    return !c->pending;
}

size_t tool_call_fds(const struct tool_call *c, struct pollfd ret[TOOL_CALL_FDS])
{
    size_t n = c->pending ? c->n_fds : 0;
    memcpy(ret, c->fd, n * sizeof *ret);
    return n;
}

int64_t tool_call_until(const struct tool_call *c)
{
    return c->until_ms;
}

void tool_call_step(struct tool_call *c)
{
    struct err err = { 0 };
    tools_pump(c->tools);
    if (c->pending)
        settle(c, c->row->step(c, &err), &err);
}

struct tool_result tool_call_end(struct tool_call *c)
{
    if (c->pending) {
        struct err err = { 0 };
        err_raise(&err, ERR_INTERRUPT, "%s was stopped before its end", c->row->name);
        settle(c, err.code, &err);
    }
    struct tool_result r = { told(c), c->failed };
    if (c->tools->call == c)
        c->tools->call = NULL;
    return r;
}

static void await(const struct tool_call *c)
{
    struct pollfd fd[TOOL_CALL_FDS + 2 * TOOLS_SHELLS_MAX];
    size_t n = tool_call_fds(c, fd);
    n += tools_fds(c->tools, fd + n);
    int64_t left = tool_call_until(c) - clock_ms();
    if (left > 0)
        poll(fd, n, (int)(left < 60000 ? left : 60000));
}

struct tool_result tools_call(struct tools *t, struct arena *a, struct str name, const json_t *args)
{
    struct tool_call *c = tool_call_begin(t, a, name, args);
    while (!tool_call_done(c)) {
        await(c);
        tool_call_step(c);
    }
    return tool_call_end(c);
}

struct tool_result tools_call_text(struct tools *t, struct arena *a, struct str name,
                                   struct str args)
{
    own_json j = NULL;
    struct err err = { 0 };
    struct str text = str_trim(args);
    if (json_parse(text.len == 0 ? S("{}") : text, ARGS_MAX, &j, &err) == OK)
        return tools_call(t, a, name, j);
    err_within(&err, "the arguments are no JSON");
    struct buf b = { .arena = a, .max = 4096 };
    text_plain(&b, str_from(err.text));
    return (struct tool_result){ { b.ptr, b.len }, true };
}
