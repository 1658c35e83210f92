/* Arguments of a model against the rows of all tools; then what they would do to a text: Edit on
 * it, its lines as a terminal shows them, a pattern against its names. The input: which row, the
 * arguments as JSON, a NUL, the text.
 */
#include <stdlib.h>

#include "core/json.h"
#include "core/own.h"
#include "tools/edit.h"
#include "tools/glob.h"
#include "tools/regex.h"
#include "tools/text.h"
#include "tools/tools.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool held)
{
    if (!held)
        abort();
}

static void edit(struct arena *a, const json_t *args, struct str text)
{
    struct edit e = { arg_text(args, "old_string", S("")), arg_text(args, "new_string", S("")),
                      arg_flag(args, "replace_all", false) };
    struct edited r = { 0 };
    struct err err = { 0 };
    if (edit_apply(a, text, &e, &r, &err) != OK) {
        must(err.text[0] != '\0');
        return;
    }
    must(r.n >= 1 && (e.all || r.n == 1) && r.from <= r.to && r.to <= r.text.len);
    if (!edit_is_crlf(text))
        must(r.text.len == text.len - r.n * e.before.len + r.n * e.after.len);
    must(memcmp(r.text.ptr, text.ptr, r.from) == 0);
}

static void tell(struct arena *a, struct str text)
{
    struct buf b = { .arena = a, .max = 1 << 22 };
    text_terminal(&b, text);
    struct str s = { b.ptr, b.len };
    for (size_t n; s.len > 0; s = str_drop(s, n)) {
        n = text_char(s);
        must(n > 0 && s.ptr[0] != '\x1b');
    }
}

static void find(struct arena *a, const json_t *args, struct str text)
{
    struct str pattern = arg_text(args, "pattern", S("")), line;
    struct glob g = { 0 };
    struct err err = { 0 };
    own_regex re = { 0 };
    bool glob = glob_make(a, pattern, true, &g, &err) == OK;
    bool regex = regex_make(pattern, REGEX_MANY_LINES, &re, &err) == OK;
    for (int i = 0; i < 20 && str_cut(&text, '\n', &line); i++) {
        struct span at = { 0 };
        if (glob)
            glob_fits(&g, line);
        if (regex && regex_find(&re, line, 0, &at) == REGEX_YES)
            must(at.from <= at.to && at.to <= line.len);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    own_arena a = { 0 };
    own_json args = NULL;
    struct tool rows[TOOLS_BUILTIN];
    struct err err = { 0 };
    tools_builtin(rows);
    if (size < 2)
        return 0;
    struct str rest = { (const char *)data + 1, size - 1 }, json = { 0 };
    const struct tool *row = &rows[data[0] % TOOLS_BUILTIN];
    str_cut(&rest, '\0', &json);
    if (json_parse(json, 1 << 20, &args, &err) != OK)
        return 0;
    if (tool_args_check(row, args, &err) != OK) {
        must(err.text[0] != '\0');
        return 0;
    }
    edit(&a, args, rest);
    tell(&a, rest);
    find(&a, args, rest);
    return 0;
}
