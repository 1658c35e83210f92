/* replay: what an episode's log holds, as something to look at, to train on, to run again. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "agent/page.h"
#include "agent/trace_exec.h"
#include "app/cmd.h"
#include "core/own.h"
#include "sys/file.h"

#define TOKENS_MAX ((size_t)4 << 30)
#define TURN_NONE -1

static bool view, again, only_passing, real, json;
static int64_t turn = TURN_NONE, restore = TURN_NONE;
static struct str html, messages, anthropic, samples, atif, markdown, diff, to;

static const struct field fields[] = {
    FIELD_FLAG("view", &view, "the episode, a line a turn: what is done without other options"),
    FIELD_INT("turn", &turn, TURN_NONE, 1000000000, "one turn whole; -1: none"),
    FIELD_FLAG("json", &json, "a summary as one JSON object"),
    FIELD_TEXT("html", &html, "one page that needs nothing else, to this file"),
    FIELD_TEXT("markdown", &markdown, "a text to read, to this file"),
    FIELD_TEXT("messages", &messages, "a line of OpenAI messages an episode, to this file"),
    FIELD_TEXT("anthropic", &anthropic, "a line of Anthropic messages an episode, to this file"),
    FIELD_TEXT("samples", &samples, "samples for training (ids, mask, log-probs), to this file"),
    FIELD_TEXT("atif", &atif, "an ATIF-v1.4 trajectory, to this file"),
    FIELD_FLAG("only_passing", &only_passing,
               "messages, anthropic, samples: without episodes in which nothing passed"),
    FIELD_FLAG("real", &real,
               "messages, anthropic: as they joined, before the context was shortened"),
    FIELD_TEXT("diff", &diff, "what changed in the files: N:M from turn to turn, N in that turn"),
    FIELD_INT("restore", &restore, TURN_NONE, 1000000000,
              "the files as they were after that turn, into the folder --to; -1: none"),
    FIELD_TEXT("to", &to, "restore: a folder that is new or empty"),
    FIELD_FLAG("exec", &again, "make the tools' calls again in a fresh workspace and compare"),
};

struct logs {
    const char **path;
    size_t n;
};

/* ---- which logs ---- */

/* A folder of attempts stands for the logs of all, in their order. */
static bool attempts_take(struct arena *a, const char *dir, struct logs *logs)
{
    size_t before = logs->n;
    for (int i = 1;; i++) {
        const char *path = path_join(a, dir, arena_fmt(a, "attempt-%d", i));
        if (!path_exists(path_join(a, path, TRACE_LOG)))
            return logs->n > before;
        const char **more = arena_new(a, const char *, logs->n + 1);
        if (logs->n > 0)
            memcpy(more, logs->path, logs->n * sizeof *more);
        more[logs->n++] = path;
        logs->path = more;
    }
}

static enum err_code logs_find(struct arena *a, struct args args, struct logs *logs,
                               struct err *err)
{
    if (args.n == 0) {
        err_raise(err, ERR_USAGE, "wants the log of an episode, or its folder");
        return err_hint(err, "a run keeps it as OUT/attempt-1/" TRACE_LOG);
    }
    for (int i = 0; i < args.n; i++) {
        if (attempts_take(a, args.v[i], logs))
            continue;
        const char **more = arena_new(a, const char *, logs->n + 1);
        if (logs->n > 0)
            memcpy(more, logs->path, logs->n * sizeof *more);
        more[logs->n++] = args.v[i];
        logs->path = more;
    }
    return OK;
}

static enum err_code log_open(struct arena *a, const char *path, struct trace *ret, struct err *err)
{
    if (trace_open(a, path, ret, err) == OK)
        return OK;
    if (err->hint[0] == '\0')
        err_hint(err, "name an episode's " TRACE_LOG ", or the folder that holds it");
    return err->code;
}

/* ---- files that are written ---- */

/* Beside the file and renamed over it: never half a file. "-": standard output. */
struct output {
    FILE *f;
    const char *path, *part;
};

static enum err_code output_open(struct arena *a, struct str path, struct output *ret,
                                 struct err *err)
{
    *ret = (struct output){ .f = stdout, .path = str_z(a, path) };
    if (str_eq(path, S("-")))
        return OK;
    ret->part = arena_fmt(a, "%s.part", ret->path);
    ret->f = fopen(ret->part, "we");
    return ret->f ? OK : err_sys(err, "create '%s'", ret->part);
}

static enum err_code output_close(struct output *o, enum err_code code, struct err *err)
{
    if (o->f == NULL || o->part == NULL)
        return code;
    bool broken = ferror(o->f) != 0;
    broken = fclose(o->f) != 0 || broken;
    o->f = NULL;
    if (code == OK && broken)
        code = err_sys(err, "write '%s'", o->part);
    if (code == OK && rename(o->part, o->path) != 0)
        code = err_sys(err, "rename '%s' to '%s'", o->part, o->path);
    if (code != OK)
        unlink(o->part);
    return code;
}

/* ---- exports ---- */

static enum err_code tokens_read(struct arena *a, const struct trace *t, struct str *ret,
                                 struct err *err)
{
    const char *path = path_join(a, t->folder, TRACE_TOKENS);
    *ret = S("");
    return path_exists(path) ? file_read(a, path, TOKENS_MAX, ret, err) : OK;
}

static enum err_code write_messages(const struct trace *t, FILE *out, struct err *err)
{
    return export_messages(t, DIALECT_OPENAI, real ? TRACE_REAL : TRACE_SEEN, out, err);
}

static enum err_code write_anthropic(const struct trace *t, FILE *out, struct err *err)
{
    return export_messages(t, DIALECT_ANTHROPIC, real ? TRACE_REAL : TRACE_SEEN, out, err);
}

static enum err_code write_samples(const struct trace *t, FILE *out, struct err *err)
{
    own_arena a = { 0 };
    struct str tokens;
    size_t n = 0;
    if (tokens_read(&a, t, &tokens, err) != OK || export_samples(t, tokens, out, &n, err) != OK)
        return err->code;
    if (n == 0)
        fprintf(stderr, "%s: no answer has tokens: no sample\n", t->folder);
    return OK;
}

static enum err_code write_atif(const struct trace *t, FILE *out, struct err *err)
{
    own_arena a = { 0 };
    struct str tokens;
    return tokens_read(&a, t, &tokens, err) != OK ? err->code : export_atif(t, tokens, out, err);
}

static enum err_code write_html(const struct trace *t, FILE *out, struct err *err)
{
    (void)err;
    page_write(t, out);
    return OK;
}

static enum err_code write_markdown(const struct trace *t, FILE *out, struct err *err)
{
    (void)err;
    export_markdown(t, out);
    return OK;
}

static const struct {
    const struct str *to;
    const char *option;
    bool lines; /* a line an episode: many logs go into one file */
    enum err_code (*write)(const struct trace *t, FILE *out, struct err *err);
} exports[] = {
    { &messages, "messages", true, write_messages },
    { &anthropic, "anthropic", true, write_anthropic },
    { &samples, "samples", true, write_samples },
    { &atif, "atif", false, write_atif },
    { &html, "html", false, write_html },
    { &markdown, "markdown", false, write_markdown },
};

static enum err_code export_logs(const struct logs *logs, size_t which, FILE *out, struct err *err)
{
    for (size_t i = 0; i < logs->n; i++) {
        own_arena a = { 0 };
        own_trace t = { 0 };
        if (log_open(&a, logs->path[i], &t, err) != OK)
            return err->code;
        if (exports[which].lines && only_passing && !trace_outcome(&t).passed)
            continue;
        if (exports[which].write(&t, out, err) != OK)
            return err_within(err, "'%s'", logs->path[i]);
    }
    return OK;
}

static enum err_code one_log(const struct logs *logs, const char *what, struct err *err)
{
    if (logs->n == 1)
        return OK;
    err_raise(err, ERR_USAGE, "%s takes one episode, here are %zu", what, logs->n);
    return err_hint(err, "name one: '%s'", logs->path[0]);
}

static enum err_code export_all(struct arena *a, const struct logs *logs, bool *ret_any,
                                struct err *err)
{
    for (size_t i = 0; i < COUNT(exports); i++) {
        struct output o;
        if (exports[i].to->len == 0)
            continue;
        *ret_any = true;
        if (!exports[i].lines && one_log(logs, arena_fmt(a, "--%s", exports[i].option), err) != OK)
            return err->code;
        if (output_open(a, *exports[i].to, &o, err) != OK)
            return err->code;
        if (output_close(&o, export_logs(logs, i, o.f, err), err) != OK)
            return err->code;
    }
    return OK;
}

/* ---- looking ---- */

static struct export_terminal terminal(void)
{
    struct winsize size = { 0 };
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    bool tty = isatty(STDOUT_FILENO) == 1;
    bool dumb = term == NULL || strcmp(term, "dumb") == 0 || (no != NULL && no[0] != '\0');
    int width = tty && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
    return (struct export_terminal){ .colour = tty && !dumb, .width = width };
}

static enum err_code print_json(const char *path, const struct trace *t, struct err *err)
{
    own_json j = trace_summary(t);
    json_object_set_new(j, "schema", json_string("cuda-agent/replay/1"));
    json_t *log = json_string(path);
    json_object_set_new(j, "log", log ? log : json_null());
    own_mem char *text = json_dumps(j, JSON_INDENT(1));
    if (text == NULL)
        return err_raise(err, ERR_SYSTEM, "no memory for the summary");
    printf("%s\n", text);
    return OK;
}

static enum err_code look(const struct logs *logs, struct err *err)
{
    struct export_terminal term = terminal();
    for (size_t i = 0; i < logs->n; i++) {
        own_arena a = { 0 };
        own_trace t = { 0 };
        if (log_open(&a, logs->path[i], &t, err) != OK)
            return err->code;
        if (json) {
            if (print_json(logs->path[i], &t, err) != OK)
                return err->code;
            continue;
        }
        if (logs->n > 1)
            printf("%s%s\n", i > 0 ? "\n" : "", logs->path[i]);
        if (turn == TURN_NONE)
            export_view(&t, &term, stdout);
        else if (export_turn(&t, turn, &term, stdout, err) != OK)
            return err->code;
    }
    return OK;
}

/* ---- files of a turn ---- */

/* "3:7" from after turn 3 to after turn 7; "7": 6:7. */
static enum err_code diff_turns(int64_t *ret_from, int64_t *ret_to, struct err *err)
{
    struct str rest = diff, from = { 0 };
    bool two = memchr(diff.ptr, ':', diff.len) != NULL;
    str_cut(&rest, ':', &from);
    if (str_int(from, 0, 1000000000, ret_from, err) != OK ||
        (two && str_int(rest, 0, 1000000000, ret_to, err) != OK)) {
        err_within(err, "--diff");
        return err_hint(err, "--diff 3:7, or --diff 7 for what turn 7 changed");
    }
    if (!two) {
        *ret_to = *ret_from;
        *ret_from -= 1;
    }
    return OK;
}

static enum err_code tree_of(const struct trace *t, int64_t n, const json_t **ret, struct err *err)
{
    *ret = trace_tree(t, n);
    if (*ret != NULL)
        return OK;
    err_raise(err, ERR_USAGE, "no files are known after turn %lld", (long long)n);
    return err_hint(err, "the log has none up to there (events 'fs')");
}

static enum err_code print_diff(const struct trace *t, struct err *err)
{
    own_arena a = { 0 };
    struct buf b = { .arena = &a, .max = (size_t)64 << 20 },
               shown = { .arena = &a, .max = SIZE_MAX / 4 };
    struct str text;
    const json_t *after;
    int64_t from, until;
    if (diff_turns(&from, &until, err) != OK || tree_of(t, until, &after, err) != OK)
        return err->code;
    trace_diff(t, trace_tree(t, from), after, &b);
    if (buf_done(&b, &text, err) != OK)
        return err->code;
    if (isatty(STDOUT_FILENO) == 1) { /* into a file or a pipe go the bytes as they are */
        export_plain(&shown, text);
        text = (struct str){ shown.ptr, shown.len };
    }
    if (text.len > 0)
        fwrite(text.ptr, 1, text.len, stdout);
    return OK;
}

static enum err_code restore_files(const struct trace *t, struct err *err)
{
    own_arena a = { 0 };
    const json_t *tree;
    size_t n;
    if (to.len == 0) {
        err_raise(err, ERR_USAGE, "--restore wants --to DIR");
        return err_hint(err, "a folder that is new or empty");
    }
    if (tree_of(t, restore, &tree, err) != OK ||
        trace_restore(t, tree, str_z(&a, to), &n, err) != OK)
        return err->code;
    printf("%zu files as they were after turn %lld, in %.*s\n", n, (long long)restore, STR_FMT(to));
    return OK;
}

/* ---- again ---- */

static void say(const char *line)
{
    printf("%s\n", line);
    fflush(stdout);
}

static enum err_code run_again(const struct trace *t, int *ret_status, struct err *err)
{
    struct exec_counts c;
    if (exec_run(t, say, &c, err) != OK)
        return err->code;
    if (c.from_nothing)
        printf("the log has no files from before the first call: the workspace began empty\n");
    printf("calls: %zu the same, %zu differ, %zu passed over; files: %zu the same, %zu differ\n",
           c.same, c.differ, c.skipped, c.files_same, c.files_differ);
    *ret_status = c.differ + c.files_differ > 0 ? 1 : 0;
    return OK;
}

static enum err_code with_one(const struct logs *logs, int *ret_status, struct err *err)
{
    own_arena a = { 0 };
    own_trace t = { 0 };
    if (one_log(logs,
                again          ? "--exec"
                : diff.len > 0 ? "--diff"
                               : "--restore",
                err) != OK ||
        log_open(&a, logs->path[0], &t, err) != OK)
        return err->code;
    if (diff.len > 0 && print_diff(&t, err) != OK)
        return err->code;
    if (restore != TURN_NONE && restore_files(&t, err) != OK)
        return err->code;
    return again ? run_again(&t, ret_status, err) : OK;
}

static enum err_code run(struct args args, int *ret_status, struct err *err)
{
    own_arena a = { 0 };
    struct logs logs = { 0 };
    bool done = again || diff.len > 0 || restore != TURN_NONE;
    if (logs_find(&a, args, &logs, err) != OK)
        return err->code;
    if (to.len > 0 && restore == TURN_NONE)
        return err_raise(err, ERR_USAGE, "--to is of --restore, which is not given");
    if (done && with_one(&logs, ret_status, err) != OK)
        return err->code;
    if (export_all(&a, &logs, &done, err) != OK)
        return err->code;
    return view || json || turn != TURN_NONE || !done ? look(&logs, err) : OK;
}

const struct cmd cmd_replay = {
    .name = "replay",
    .operands = "LOG|DIR...",
    .summary = "an episode's log: to look at, to train on, to run again",
    .details =
        "LOG is an episode's events.jsonl; DIR the folder of an attempt, or of a whole run, which\n"
        "stands for all its attempts. What of a log is damaged is named; half a last line is what "
        "a\n"
        "run that was cut leaves, and is passed over. FILE '-' is standard output. Formats:\n"
        "docs/agent.md. Exit status: 0; 1 where --exec finds a difference; else an error.\n\n"
        "example: cuda-agent replay OUT/attempt-1\n"
        "         cuda-agent replay OUT/attempt-1 --turn 7 | less\n"
        "         cuda-agent replay OUT/attempt-1 --html episode.html\n"
        "         cuda-agent replay OUT --messages sft.jsonl --only-passing\n"
        "         cuda-agent replay OUT --samples rl.jsonl\n"
        "         cuda-agent replay OUT/attempt-1 --restore 7 --to files\n"
        "         cuda-agent replay OUT/attempt-1 --exec",
    .fields = fields,
    .n_fields = COUNT(fields),
    .run = run,
};
