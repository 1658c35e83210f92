/* Glob, Grep. */
#include "core/own.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "tools/glob.h"
#include "tools/regex.h"
#include "tools/text.h"
#include "tools/tools_int.h"
#include "tools/walk.h"

#define NAMES_MAX 100     /* files that are told */
#define LINES_DEFAULT 200 /* lines that are told where head_limit is left out */
#define GREP_FILE_MAX ((int64_t)8 << 20)
#define CONTEXT_MAX 50

static enum err_code where(struct tool_call *c, struct place *ret, struct err *err)
{
    return place_find(c->tools->folder, c->arena, arg_text(c->args, "path", S(".")), ret, err);
}

/* As a model may name it again. */
static const char *name_of(struct arena *a, const struct place *root, const struct found *f)
{
    bool spill = root->name != root->rel;
    return spill ? path_join(a, root->folder->inside, f->rel) : f->rel;
}

/* ---- Glob ---- */

static enum err_code glob_run(struct tool_call *c, struct err *err)
{
    own_arena tmp = { 0 };
    struct place root;
    struct glob g;
    struct walk w;
    size_t n = 0;
    if (where(c, &root, err) != OK ||
        glob_make(&tmp, arg_text(c->args, "pattern", S("")), false, &g, err) != OK ||
        walk_files(&root, &tmp, &w, err) != OK)
        return err->code;
    for (size_t i = 0; i < w.n; i++) {
        if (clock_ms() > w.until_ms) {
            w.cut = true;
            break;
        }
        if (!glob_fits(&g, str_from(w.file[i].below)))
            continue;
        if (n++ >= NAMES_MAX)
            continue;
        text_line(&c->text, str_from(name_of(&tmp, &root, &w.file[i])));
        buf_addz(&c->text, "\n");
    }
    if (n == 0)
        buf_addz(&c->text, "[no file fits]");
    if (n > NAMES_MAX)
        buf_addf(&c->text, "[%zu more: a narrower pattern tells them]", n - NAMES_MAX);
    if (w.cut)
        buf_addz(&c->text, "\n[not all was looked at: too many files, or too much time]");
    return OK;
}

/* ---- Grep ---- */

enum mode { GREP_FILES, GREP_CONTENT, GREP_COUNT };
static const char *const modes[] = { "files_with_matches", "content", "count", NULL };

struct grep {
    struct tool_call *call;
    struct arena tmp; /* of one file: rewound after it */
    struct regex re;  /* owned */
    enum mode mode;
    bool many_lines, numbers;
    size_t before, after; /* lines of context */
    size_t left;          /* lines (or files) that may still be told */
    size_t files, gave_up, skipped, binaries;
    bool cut;
};

struct line {
    size_t from, to; /* without its end */
};

/* One line of output; false when no more may be told. */
static bool told(struct grep *g, const char *name, size_t number, char sign, struct str text)
{
    struct buf *b = &g->call->text;
    if (g->left == 0) {
        g->cut = true;
        return false;
    }
    g->left--;
    text_plain(b, str_from(name));
    if (g->numbers)
        buf_addf(b, "%c%zu%c", sign, number, sign);
    else
        buf_addf(b, "%c", sign);
    if (text.len > 0 && text.ptr[text.len - 1] == '\r')
        text.len--;
    text_line(b, text);
    buf_addz(b, "\n");
    return true;
}

static struct line *lines_of(struct arena *a, struct str text, size_t *ret_n)
{
    size_t n = text_lines(text), at = 0;
    struct line *v = arena_new(a, struct line, n + 1);
    for (size_t i = 0; i < n; i++) {
        const char *end = memchr(text.ptr + at, '\n', text.len - at);
        v[i] = (struct line){ at, end ? (size_t)(end - text.ptr) : text.len };
        at = v[i].to + 1;
    }
    *ret_n = n;
    return v;
}

/* Which lines match, one by one. Returns how many. */
static size_t mark_single(struct grep *g, struct str text, const struct line *v, size_t n,
                          bool *hit, int64_t until_ms)
{
    size_t hits = 0;
    for (size_t i = 0; i < n; i++) {
        struct span at;
        struct str line = { text.ptr + v[i].from, v[i].to - v[i].from };
        if (line.len > 0 && line.ptr[line.len - 1] == '\r')
            line.len--;
        enum regex_found f = regex_find(&g->re, line, 0, &at);
        hit[i] = f == REGEX_YES;
        hits += hit[i];
        g->gave_up += f == REGEX_GAVE_UP;
        if ((f == REGEX_GAVE_UP || i % 256 == 0) && clock_ms() > until_ms) {
            g->cut = true;
            break;
        }
    }
    return hits;
}

/* The same over line ends: every line that a match touches. */
static size_t mark_many(struct grep *g, struct str text, const struct line *v, size_t n, bool *hit,
                        int64_t until_ms)
{
    size_t hits = 0, i = 0;
    for (size_t from = 0; from <= text.len;) {
        struct span at;
        enum regex_found f = regex_find(&g->re, text, from, &at);
        g->gave_up += f == REGEX_GAVE_UP;
        if (f != REGEX_YES)
            break;
        while (i < n && v[i].to < at.from)
            i++;
        size_t last = at.to > at.from ? at.to - 1 : at.to;
        for (size_t k = i; k < n && v[k].from <= last; k++)
            hit[k] = true;
        hits++;
        from = at.to > at.from ? at.to : at.to + 1;
        while (from < text.len && ((unsigned char)text.ptr[from] & 0xc0) == 0x80)
            from++;
        if (hits % 256 == 0 && clock_ms() > until_ms) {
            g->cut = true;
            break;
        }
    }
    return hits;
}

static bool near_hit(const struct grep *g, const bool *hit, size_t n, size_t i)
{
    size_t from = i > g->after ? i - g->after : 0, to = i + g->before;
    for (size_t k = from; k <= to && k < n; k++)
        if (hit[k])
            return true;
    return false;
}

static void tell_lines(struct grep *g, const char *name, struct str text, const struct line *v,
                       size_t n, const bool *hit)
{
    bool context = g->before + g->after > 0, gap = g->files > 1;
    for (size_t i = 0; i < n; i++) {
        if (!hit[i] && (!context || !near_hit(g, hit, n, i))) {
            gap = true;
            continue;
        }
        if (context && gap && g->call->text.len > 0)
            buf_addz(&g->call->text, "--\n");
        gap = false;
        struct str line = { text.ptr + v[i].from, v[i].to - v[i].from };
        if (!told(g, name, i + 1, hit[i] ? ':' : '-', line))
            return;
    }
}

static void tell_file(struct grep *g, const char *name, struct str text, const struct line *v,
                      size_t n, const bool *hit, size_t hits)
{
    g->files++;
    if (g->mode == GREP_CONTENT) {
        tell_lines(g, name, text, v, n, hit);
        return;
    }
    if (g->left == 0) {
        g->cut = true;
        return;
    }
    g->left--;
    text_plain(&g->call->text, str_from(name));
    if (g->mode == GREP_COUNT)
        buf_addf(&g->call->text, ":%zu", hits);
    buf_addz(&g->call->text, "\n");
}

static void search(struct grep *g, const struct place *root, const struct found *f,
                   int64_t until_ms)
{
    struct place p = { root->folder, f->rel, f->rel };
    struct err ignored = { 0 }; /* gone or closed meanwhile: counted */
    struct str text;
    struct stat st;
    size_t n;
    if (f->bytes > GREP_FILE_MAX || place_read(&p, &g->tmp, &text, &st, &ignored) != OK) {
        g->skipped++;
        return;
    }
    if (text_binary(text)) {
        g->binaries++;
        return;
    }
    struct line *v = lines_of(&g->tmp, text, &n);
    bool *hit = arena_new(&g->tmp, bool, n + 1);
    size_t hits = (g->many_lines ? mark_many : mark_single)(g, text, v, n, hit, until_ms);
    if (hits > 0)
        tell_file(g, name_of(&g->tmp, root, f), text, v, n, hit, hits);
}

static void notes(struct grep *g, bool walk_cut)
{
    struct buf *b = &g->call->text;
    if (g->files == 0)
        buf_addz(b, "[no match]\n");
    if (g->cut || walk_cut)
        buf_addz(b, "[there is more: give path, glob or head_limit]\n");
    if (g->gave_up > 0)
        buf_addf(b, "[the pattern takes too many steps in %zu places, which were left out]\n",
                 g->gave_up);
    if (g->skipped > 0)
        buf_addf(b, "[%zu files were left out: larger than %lld bytes, or closed]\n", g->skipped,
                 (long long)GREP_FILE_MAX);
    if (g->binaries > 0 && g->files == 0)
        buf_addf(b, "[%zu binary files were left out]\n", g->binaries);
}

static enum mode mode_of(const json_t *args)
{
    struct str word = arg_text(args, "output_mode", str_from(modes[0]));
    for (size_t i = 0; modes[i] != NULL; i++)
        if (str_eq(word, str_from(modes[i])))
            return (enum mode)i;
    return GREP_FILES;
}

static enum err_code grep_make(struct tool_call *c, struct grep *g, struct err *err)
{
    const json_t *args = c->args;
    int64_t around = arg_int(args, "-C", 0);
    g->call = c;
    g->mode = mode_of(args);
    g->many_lines = arg_flag(args, "multiline", false);
    g->numbers = arg_flag(args, "-n", true);
    g->before = (size_t)arg_int(args, "-B", around);
    g->after = (size_t)arg_int(args, "-A", around);
    g->left =
        (size_t)arg_int(args, "head_limit", g->mode == GREP_CONTENT ? LINES_DEFAULT : NAMES_MAX);
    unsigned flags = (arg_flag(args, "-i", false) ? REGEX_ANY_CASE : 0u) |
                     (g->many_lines ? REGEX_MANY_LINES : 0u);
    return regex_make(arg_text(args, "pattern", S("")), flags, &g->re, err);
}

static enum err_code grep_files(struct grep *g, struct err *err)
{
    own_arena tmp = { 0 };
    struct place root;
    struct glob glob = { 0 };
    struct walk w;
    struct str only = arg_text(g->call->args, "glob", S(""));
    if (where(g->call, &root, err) != OK || walk_files(&root, &tmp, &w, err) != OK ||
        (only.len > 0 && glob_make(&tmp, only, true, &glob, err) != OK))
        return err->code;
    for (size_t i = 0; i < w.n && !g->cut; i++) {
        struct arena_mark mark = arena_mark(&g->tmp);
        g->cut = clock_ms() > w.until_ms;
        if (!g->cut && (only.len == 0 || glob_fits(&glob, str_from(w.file[i].below))))
            search(g, &root, &w.file[i], w.until_ms);
        arena_rewind(&g->tmp, mark);
    }
    notes(g, w.cut);
    return OK;
}

static enum err_code grep_run(struct tool_call *c, struct err *err)
{
    struct grep g = { 0 };
    enum err_code code = grep_make(c, &g, err);
    if (code == OK)
        code = grep_files(&g, err);
    regex_fini(&g.re);
    arena_fini(&g.tmp);
    return code;
}

/* ---- rows ---- */

#define PATH_PARAM                                                                         \
    {                                                                                      \
        .name = "path", .help = "Folder or file to look in; the workspace when left out.", \
        .kind = PARAM_TEXT, .min = 1, .max = 1024                                          \
    }

static const struct tool_param glob_params[] = {
    { .name = "pattern",
      .help = "*.cu, kernels/**/*.{c,h}; ** is any number of folders.",
      .kind = PARAM_TEXT,
      .required = true,
      .min = 1,
      .max = 1000 },
    PATH_PARAM,
};

static const struct tool_param grep_params[] = {
    { .name = "pattern",
      .help = "A Perl regular expression.",
      .kind = PARAM_TEXT,
      .required = true,
      .min = 1,
      .max = 2000 },
    PATH_PARAM,
    { .name = "glob",
      .help = "Only files like this: *.cu, src/**/*.h.",
      .kind = PARAM_TEXT,
      .min = 1,
      .max = 1000 },
    { .name = "output_mode",
      .help = "files_with_matches when left out.",
      .kind = PARAM_CHOICE,
      .choices = modes },
    { .name = "-A",
      .help = "Lines after each match (content).",
      .kind = PARAM_INT,
      .max = CONTEXT_MAX },
    { .name = "-B",
      .help = "Lines before each match (content).",
      .kind = PARAM_INT,
      .max = CONTEXT_MAX },
    { .name = "-C",
      .help = "Lines before and after (content).",
      .kind = PARAM_INT,
      .max = CONTEXT_MAX },
    { .name = "-n",
      .help = "With line numbers (content); true when left out.",
      .kind = PARAM_FLAG },
    { .name = "-i", .help = "Upper and lower case are the same.", .kind = PARAM_FLAG },
    { .name = "head_limit",
      .help = "So many lines, or files.",
      .kind = PARAM_INT,
      .min = 1,
      .max = 10000 },
    { .name = "multiline",
      .help = "Match over line ends; . is any character.",
      .kind = PARAM_FLAG },
};

const struct tool find_tools[FIND_TOOLS] = {
    { .name = "Glob",
      .description =
          "Files by name, the newest first, 100 at most. Leaves out .git and what links lead to.",
      .param = glob_params,
      .n_param = COUNT(glob_params),
      .reads = true,
      .run = glob_run },
    { .name = "Grep",
      .description =
          "Search the text of files. Tells their names, or with output_mode content the lines, or "
          "with count the number of matches. Leaves out .git, binaries, and what links lead to.",
      .param = grep_params,
      .n_param = COUNT(grep_params),
      .reads = true,
      .run = grep_run },
};
