/* Read, Write, Edit, MultiEdit. */
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "core/own.h"
#include "tools/edit.h"
#include "tools/text.h"
#include "tools/tools_int.h"

#define READ_LINES 2000
#define READ_BYTES ((size_t)60000) /* of a result: some 15,000 tokens */
#define SNIPPET_LINES 4            /* before and after a change */
#define SNIPPET_LINES_MAX 60

static enum err_code target(struct tool_call *c, struct place *ret, struct err *err)
{
    return place_find(c->tools->folder, c->arena, arg_text(c->args, "file_path", S("")), ret, err);
}

/* ---- Read ---- */

/* Of a few names in the folder that `p` should lie in. */
static void say_neighbours(const struct place *p, struct err *err)
{
    own_arena tmp = { 0 };
    const char *slash = strrchr(p->rel, '/');
    const char *parent = slash ? arena_fmt(&tmp, "%.*s", (int)(slash - p->rel), p->rel) : ".";
    int fd = open_below(p->folder->fd, parent, O_RDONLY | O_DIRECTORY, true);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct buf b = { .arena = &tmp, .max = 300 };
    if (d == NULL) {
        own_fd_drop(&fd);
        err_hint(err, "there is no folder '%s'", parent);
        return;
    }
    for (struct dirent *e = readdir(d); e != NULL && !b.full; e = readdir(d))
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            buf_addf(&b, "%s%s", b.len == 0 ? "" : ", ", e->d_name);
    closedir(d);
    err_hint(err, "%s holds: %s%s", strcmp(parent, ".") == 0 ? "the workspace" : parent,
             b.ptr ? b.ptr : "nothing", b.full ? ", ..." : "");
}

static enum err_code read_text(const struct place *p, struct arena *a, struct str *ret,
                               struct stat *st, struct err *err)
{
    if (place_look(p, st, err) != OK)
        return err->code;
    if (place_read(p, a, ret, st, err) == OK)
        return OK;
    if (st->st_mode == 0)
        say_neighbours(p, err);
    return err->code;
}

/* `cat -n` of lines first to first + most - 1; ends before READ_BYTES. Returns the line after. */
static size_t number_lines(struct buf *b, struct str text, size_t first, size_t most)
{
    struct str line;
    size_t n = 1, start = b->len;
    for (; str_cut(&text, '\n', &line); n++) {
        if (n < first)
            continue;
        if (n - first >= most || b->len - start > READ_BYTES)
            break;
        if (line.len > 0 && line.ptr[line.len - 1] == '\r')
            line.len--;
        buf_addf(b, "%6zu\t", n);
        text_line(b, line);
        buf_addz(b, "\n");
    }
    return n;
}

static enum err_code binary(const struct place *p, struct str text, struct err *err)
{
    err_raise(err, ERR_USAGE, "'%s' is a binary file of %zu bytes", p->name, text.len);
    return err_hint(err, "Bash can look at it: xxd, strings, objdump, cuobjdump");
}

static void read_notes(struct tool_call *c, struct str text, size_t first, size_t next)
{
    size_t lines = text_lines(text);
    if (text.len == 0)
        buf_addz(&c->text, "[the file is empty]");
    else if (first > lines)
        buf_addf(&c->text, "[the file has %zu lines, offset %zu is past its end]", lines, first);
    else if (next <= lines)
        buf_addf(&c->text, "[lines %zu to %zu of %zu; go on with offset %zu]\n", first, next - 1,
                 lines, next);
    if (edit_is_crlf(text))
        buf_addz(&c->text, "[its lines end in CRLF; Edit keeps that]\n");
}

static enum err_code read_run(struct tool_call *c, struct err *err)
{
    own_arena tmp = { 0 };
    struct place p;
    struct str text;
    struct stat st;
    if (target(c, &p, err) != OK || read_text(&p, &tmp, &text, &st, err) != OK)
        return err->code;
    if (text_binary(text))
        return binary(&p, text, err);
    size_t first = (size_t)arg_int(c->args, "offset", 1);
    size_t most = (size_t)arg_int(c->args, "limit", READ_LINES);
    first = first == 0 ? 1 : first;
    size_t next = number_lines(&c->text, text, first, most);
    read_notes(c, text, first, next);
    if (p.folder == &c->tools->folder[FOLDER_WORKSPACE])
        seen_put(c->tools, &p, text);
    c->whole = true;
    return OK;
}

/* ---- Write ---- */

static enum err_code store(struct tool_call *c, const struct place *p, struct str text, mode_t mode,
                           struct err *err)
{
    if (place_write(p, text, mode, err) != OK)
        return err->code;
    seen_put(c->tools, p, text);
    return OK;
}

/* What is there, if anything: a file that was read. */
static enum err_code present(struct tool_call *c, struct arena *a, const struct place *p,
                             struct str *ret, struct stat *st, struct err *err)
{
    if (place_may_write(c->tools, p, err) != OK || place_look(p, st, err) != OK)
        return err->code;
    if (st->st_mode == 0)
        return OK;
    if (place_read(p, a, ret, st, err) != OK)
        return err->code;
    return seen_check(c->tools, p, *ret, err);
}

static enum err_code write_run(struct tool_call *c, struct err *err)
{
    own_arena tmp = { 0 };
    struct place p;
    struct str old = { 0 }, text = arg_text(c->args, "content", S(""));
    struct stat st;
    if (target(c, &p, err) != OK || present(c, &tmp, &p, &old, &st, err) != OK)
        return err->code;
    mode_t mode = st.st_mode == 0 ? 0644 : st.st_mode & 0777;
    if (store(c, &p, text, mode, err) != OK)
        return err->code;
    buf_addf(&c->text, "%s '%s': %zu lines, %zu bytes.", st.st_mode == 0 ? "Made" : "Wrote", p.name,
             text_lines(text), text.len);
    return OK;
}

/* ---- Edit, MultiEdit ---- */

static void snippet(struct buf *b, const struct edited *e)
{
    size_t first = 1, last;
    for (size_t i = 0; i < e->from; i++)
        first += e->text.ptr[i] == '\n';
    last = first;
    for (size_t i = e->from; i < e->to; i++)
        last += e->text.ptr[i] == '\n';
    first = first > SNIPPET_LINES ? first - SNIPPET_LINES : 1;
    size_t most = last + SNIPPET_LINES - first + 1;
    number_lines(b, e->text, first, most < SNIPPET_LINES_MAX ? most : SNIPPET_LINES_MAX);
}

static struct edit edit_of(const json_t *args)
{
    return (struct edit){ arg_text(args, "old_string", S("")), arg_text(args, "new_string", S("")),
                          arg_flag(args, "replace_all", false) };
}

/* An empty old_string makes a file that is not there. */
static enum err_code edit_new(struct tool_call *c, const struct place *p, struct err *err)
{
    struct edit e = edit_of(c->args);
    if (e.before.len > 0) {
        err_raise(err, ERR_USAGE, "there is no '%s'", p->name);
        say_neighbours(p, err);
        return err->code;
    }
    if (store(c, p, e.after, 0644, err) != OK)
        return err->code;
    buf_addf(&c->text, "Made '%s': %zu lines, %zu bytes.", p->name, text_lines(e.after),
             e.after.len);
    return OK;
}

/* The text to edit; st_mode 0: there is none. */
static enum err_code edit_open(struct tool_call *c, struct arena *a, struct place *p,
                               struct str *text, struct stat *st, struct err *err)
{
    if (target(c, p, err) != OK || present(c, a, p, text, st, err) != OK)
        return err->code;
    return st->st_mode != 0 && text_binary(*text) ? binary(p, *text, err) : OK;
}

static enum err_code edit_run(struct tool_call *c, struct err *err)
{
    own_arena tmp = { 0 };
    struct place p;
    struct str text = { 0 };
    struct stat st;
    struct edit e = edit_of(c->args);
    struct edited done;
    if (edit_open(c, &tmp, &p, &text, &st, err) != OK)
        return err->code;
    if (st.st_mode == 0)
        return edit_new(c, &p, err);
    if (edit_apply(&tmp, text, &e, &done, err) != OK)
        return err_within(err, "'%s'", p.name);
    if (store(c, &p, done.text, st.st_mode & 0777, err) != OK)
        return err->code;
    buf_addf(&c->text, "Changed '%s' in %zu place%s:\n", p.name, done.n, done.n == 1 ? "" : "s");
    snippet(&c->text, &done);
    return OK;
}

static enum err_code multi_run(struct tool_call *c, struct err *err)
{
    own_arena tmp = { 0 };
    struct place p;
    struct str text = { 0 };
    struct stat st;
    const json_t *edits = json_object_get(c->args, "edits");
    if (edit_open(c, &tmp, &p, &text, &st, err) != OK)
        return err->code;
    if (st.st_mode == 0) {
        err_raise(err, ERR_USAGE, "there is no '%s'", p.name);
        return err_hint(err, "Write makes a new file");
    }
    size_t n = json_array_size(edits), places = 0, bytes = 0;
    for (size_t i = 0; i < n; i++) {
        struct edit e = edit_of(json_array_get(edits, i));
        struct edited done;
        if (edit_apply(&tmp, text, &e, &done, err) != OK)
            return err_within(err, "'%s' is unchanged: edit %zu of %zu", p.name, i + 1, n);
        text = done.text;
        places += done.n;
        bytes += text.len;
        if (bytes > 8 * EDIT_TEXT_MAX)
            return err_raise(err, ERR_LIMIT, "too much text for one call: give fewer edits");
    }
    if (store(c, &p, text, st.st_mode & 0777, err) != OK)
        return err->code;
    buf_addf(&c->text, "Changed '%s': %zu edits, %zu places.", p.name, n, places);
    return OK;
}

/* ---- rows ---- */

#define FILE_PATH                                                                                 \
    {                                                                                             \
        .name = "file_path", .help = "The file, from the workspace's root or by its whole path.", \
        .kind = PARAM_TEXT, .required = true, .min = 1, .max = 1024                               \
    }
#define OLD_STRING                                                                          \
    {                                                                                       \
        .name = "old_string", .help = "What stands in the file, exactly, with its blanks.", \
        .kind = PARAM_TEXT, .required = true                                                \
    }
#define NEW_STRING                                                                 \
    {                                                                              \
        .name = "new_string", .help = "What takes its place.", .kind = PARAM_TEXT, \
        .required = true                                                           \
    }
#define REPLACE_ALL                                                                 \
    {                                                                               \
        .name = "replace_all", .help = "Every place; else there must be one only.", \
        .kind = PARAM_FLAG                                                          \
    }

static const struct tool_param read_params[] = {
    FILE_PATH,
    { .name = "offset",
      .help = "The first line to tell, from 1.",
      .kind = PARAM_INT,
      .max = 1000000000 },
    { .name = "limit",
      .help = "So many lines; 2000 when left out.",
      .kind = PARAM_INT,
      .min = 1,
      .max = 1000000000 },
};
static const struct tool_param write_params[] = {
    FILE_PATH,
    { .name = "content", .help = "The whole file.", .kind = PARAM_TEXT, .required = true },
};
static const struct tool_param edit_params[] = { FILE_PATH, OLD_STRING, NEW_STRING, REPLACE_ALL };
static const struct tool_param one_edit[] = { OLD_STRING, NEW_STRING, REPLACE_ALL };
static const struct tool_param multi_params[] = {
    FILE_PATH,
    { .name = "edits",
      .help = "Each applies to what the one before it left.",
      .kind = PARAM_LIST,
      .required = true,
      .min = 1,
      .item = one_edit,
      .n_item = COUNT(one_edit) },
};

const struct tool file_tools[FILE_TOOLS] = {
    { .name = "Read",
      .description =
          "A file of the workspace with its lines numbered (number, tab, line). Tells 2000 lines "
          "at most and where to go on; cuts lines after 2000 bytes. Not for folders and binaries.",
      .param = read_params,
      .n_param = COUNT(read_params),
      .reads = true,
      .run = read_run },
    { .name = "Write",
      .description =
          "Make a file, or write it anew; folders on the way are made. A file that exists must "
          "have "
          "been read, and not have changed since. To change a part, Edit is the better way.",
      .param = write_params,
      .n_param = COUNT(write_params),
      .run = write_run },
    { .name = "Edit",
      .description =
          "Replace old_string by new_string in a file that was read. old_string must stand there "
          "exactly and once, or replace_all be set; it is without the line numbers of Read. An "
          "empty old_string makes a file that is not there.",
      .param = edit_params,
      .n_param = COUNT(edit_params),
      .run = edit_run },
    { .name = "MultiEdit",
      .description = "Several edits of one file, in order, as Edit does them: all of them or none.",
      .param = multi_params,
      .n_param = COUNT(multi_params),
      .run = multi_run },
};
