#include "agent/trace_exec.h"

#include <sys/stat.h>

#include "agent/export.h"
#include "sys/file.h"
#include "tools/regex.h"
#include "tools/tools.h"

#define FILE_MAX ((size_t)64 << 20)

struct exec {
    const struct trace *t;
    void (*say)(const char *line);
    struct exec_counts *count;
    const char *dir; /* the workspace */
    struct tools *tools;
};

/* ---- comparing ---- */

static const struct {
    const char *pattern, *as;
} normal[] = {
    { "[^\\s'\"=:]*/workspace(?![\\w-])", "/workspace" },
    { "[^\\s'\"=:]*/(?:tool-output|spill)(?![\\w-])", "/tool-output" },
    { "\\b\\d+(?:\\.\\d+)? ?(?:ns|us|ms|s|m|min|sec|seconds|minutes)\\b", "T" },
    { "\\b(?:\\d{4}-\\d\\d-\\d\\d[T ]?)?\\d\\d:\\d\\d(?::\\d\\d)?(?:\\.\\d+)?Z?", "T" },
    { "\\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +\\d{1,2}\\b", "T" },
};

static struct str replaced(struct arena *a, struct str text, const char *pattern, const char *as)
{
    own_regex re = { 0 };
    struct err err = { 0 };
    struct buf b = { .arena = a, .max = SIZE_MAX / 4 };
    struct span at;
    size_t from = 0;
    if (regex_make(str_from(pattern), REGEX_PLAIN, &re, &err) != OK)
        return text; /* ours: the tests see to it */
    while (from < text.len && regex_find(&re, text, from, &at) == REGEX_YES && at.to > at.from) {
        buf_add(&b, (struct str){ text.ptr + from, at.from - from });
        buf_addz(&b, as);
        from = at.to;
    }
    buf_add(&b, str_drop(text, from));
    return (struct str){ b.ptr ? b.ptr : "", b.len };
}

struct str exec_normal(struct arena *a, struct str text)
{
    for (size_t i = 0; i < COUNT(normal); i++)
        text = replaced(a, text, normal[i].pattern, normal[i].as);
    return str_trim(text);
}

/* The first line in which they part. */
static void first_difference(struct buf *b, struct str was, struct str is)
{
    struct str old = S(""), new = S("");
    size_t n = 1;
    for (; was.len > 0 || is.len > 0; n++) {
        old = new = S("");
        str_cut(&was, '\n', &old);
        str_cut(&is, '\n', &new);
        if (!str_eq(old, new))
            break;
    }
    buf_addf(b, "line %zu was '", n);
    export_line(b, old, 120);
    buf_addz(b, "', is '");
    export_line(b, new, 120);
    buf_addz(b, "'");
}

/* ---- calls ---- */

static void say_call(const struct exec *x, const json_t *end, struct buf *what)
{
    own_arena tmp = { 0 };
    struct buf b = { .arena = &tmp, .max = 4096 };
    buf_addf(&b, "turn %lld ", (long long)trace_int(end, "turn", -1));
    export_line(&b, trace_text(end, "name"), 40);
    buf_addz(&b, ": ");
    buf_add(&b, (struct str){ what->ptr, what->len });
    x->say(b.ptr);
}

static void call_again(struct exec *x, const json_t *end)
{
    own_arena a = { 0 };
    const struct chat_part *call = trace_call(x->t, end);
    struct buf b = { .arena = &a, .max = 4096 };
    bool skipped = json_is_true(json_object_get(end, "skipped"));
    if (call == NULL || skipped || tools_find(x->tools, call->name) == NULL) {
        x->count->skipped++;
        buf_addz(&b, call == NULL ? "passed over: its arguments are not in the log"
                     : skipped    ? "passed over: it was not run then"
                                  : "passed over: not a tool that can be run here");
        say_call(x, end, &b);
        return;
    }
    struct tool_result r = tools_call_text(x->tools, &a, call->name, call->args);
    struct str was = exec_normal(&a, trace_text(end, "text")), is = exec_normal(&a, r.text);
    bool failed = json_is_true(json_object_get(end, "failed"));
    if (failed == r.failed && str_eq(was, is)) {
        x->count->same++;
        return;
    }
    x->count->differ++;
    buf_addz(&b, "differs: ");
    if (failed != r.failed)
        buf_addf(&b, "%s then, %s now; ", failed ? "failed" : "worked",
                 r.failed ? "fails" : "works");
    first_difference(&b, was, is);
    say_call(x, end, &b);
}

/* ---- files ---- */

static void file_compare(struct exec *x, const json_t *event, const json_t *f)
{
    own_arena a = { 0 };
    struct str was, is, path = trace_text(f, "path");
    struct err err = { 0 };
    struct buf b = { .arena = &a, .max = 8192 };
    if (trace_object(x->t, &a, trace_text(f, "hash"), &was, &err) != OK)
        return; /* nothing to compare with */
    bool there = file_read(&a, path_join(&a, x->dir, str_z(&a, path)), FILE_MAX, &is, &err) == OK;
    if (there && str_eq(was, is)) {
        x->count->files_same++;
        return;
    }
    x->count->files_differ++;
    buf_addf(&b, "turn %lld file ", (long long)trace_int(event, "turn", -1));
    export_line(&b, path, 200);
    buf_addz(&b, there ? ": differs: " : ": is not there");
    if (there)
        first_difference(&b, was, is);
    x->say(b.ptr);
}

static void files_compare(struct exec *x, const json_t *event)
{
    size_t i;
    json_t *f;
    json_array_foreach(json_object_get(event, "files"), i, f) file_compare(x, event, f);
}

/* Files from before the first call. */
static enum err_code begin_lay(struct exec *x, struct err *err)
{
    const json_t *tree = NULL;
    size_t n = 0;
    for (size_t i = 0; i < x->t->n_events && !trace_is(x->t->event[i], "tool_start"); i++)
        if (trace_is(x->t->event[i], "fs"))
            tree = x->t->event[i];
    x->count->from_nothing = tree == NULL;
    return tree == NULL ? OK : trace_restore(x->t, tree, x->dir, &n, err);
}

static enum err_code all_again(struct exec *x, struct err *err)
{
    struct tools_spec spec = { .workspace = x->dir };
    if (dir_make(x->dir, 0755, err) != OK || begin_lay(x, err) != OK ||
        tools_open(&spec, &x->tools, err) != OK)
        return err->code;
    tools_adopt(x->tools);
    for (size_t k = 0; k < x->t->n_turns; k++) {
        const struct trace_turn *turn = &x->t->turn[k];
        for (size_t i = turn->first; i < turn->first + turn->n; i++)
            if (trace_is(x->t->event[i], "tool_end"))
                call_again(x, x->t->event[i]);
        if (turn->files_now != NULL)
            files_compare(x, turn->files_now);
    }
    tools_close(x->tools);
    return OK;
}

enum err_code exec_run(const struct trace *t, void (*say)(const char *line),
                       struct exec_counts *ret, struct err *err)
{
    own_arena a = { 0 };
    struct exec_counts count = { 0 };
    const char *top = NULL, *parent = getenv("TMPDIR");
    if (dir_temp(&a, parent != NULL && parent[0] == '/' ? parent : "/tmp", "cuda-agent-replay",
                 &top, err) != OK)
        return err->code;
    struct err ignored = { 0 };
    struct exec x = { .t = t, .say = say, .count = &count, .dir = path_join(&a, top, "workspace") };
    enum err_code code =
        chmod(top, dir_mode()) == 0 ? all_again(&x, err) : err_sys(err, "open '%s'", top);
    if (dir_remove(top, code == OK ? err : &ignored) != OK && code == OK)
        return err->code;
    if (code == OK)
        *ret = count;
    return code;
}
