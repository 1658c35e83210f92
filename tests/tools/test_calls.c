/* What does not belong to one tool: arguments against rows, schemas, rows of others, results that
 * are too long, random arguments, memory, and the table in docs/tools.md.
 */
#include "episode.h"

#include <malloc.h>

#include "tools/gather.h"
#include "tools/text.h"

static void arguments(void **state)
{
    static const struct {
        const char *tool, *args, *want;
    } rows[] = {
        { "Nope", "{}",
          "there is no tool 'Nope'; there are Bash, BashOutput, KillShell, Read, Write, Edit, "
          "MultiEdit, Glob, Grep, TodoWrite" },
        { "read", "{}", "there is no tool 'read'" },
        { "Read", "", "Read: 'file_path' is missing: The file" },
        { "Read", "{\"path\": \"a\"}",
          "Read: there is no parameter 'path'; it takes file_path, offset, limit" },
        { "Read", "{\"file_path\": 1}", "'file_path' is a number, wanted text" },
        { "Read", "{\"file_path\": null}", "'file_path' is null, wanted text" },
        { "Read", "{\"file_path\": {\"a\": 1}}", "'file_path' is an object, wanted text" },
        { "Read", "{\"file_path\": \"a\", \"offset\": \"3\"}",
          "'offset' is text, wanted a whole number" },
        { "Read", "{\"file_path\": \"a\", \"offset\": 1.5}",
          "'offset' is 1.5, wanted a whole number" },
        { "Read", "{\"file_path\": \"a\", \"offset\": 1e300}", "wanted a whole number" },
        { "Read", "{\"file_path\": \"a\", \"offset\": -1}", "'offset' is -1, wanted 0 to" },
        { "Read", "{\"file_path\": \"a\", \"limit\": 0}", "wanted 1 to 1000000000" },
        { "Edit",
          "{\"file_path\": \"a\", \"old_string\": \"a\", \"new_string\": \"b\", \"replace_all\": "
          "\"yes\"}",
          "'replace_all' is text, wanted true or false" },
        { "Read", "[]", "Read: a list instead of an object with file_path, offset, limit" },
        { "Read", "\"a\"", "the arguments are no JSON: JSON line 1" },
        { "Read", "{\"file_path\": \"a\"", "the arguments are no JSON" },
        { "Read", "{\"file_path\": \"a\", \"file_path\": \"b\"}", "the arguments are no JSON" },
        { "Read", "{\"file_path\": \"a\\u0000b\"}", "the arguments are no JSON" },
        { "TodoWrite", "{\"todos\": [1]}",
          "'todos', item 1: a number instead of an object with content" },
        { "TodoWrite", "{\"todos\": [{\"content\": \"a\", \"status\": \"pending\", \"id\": 1}]}",
          "TodoWrite: 'todos', item 1: there is no parameter 'id'" },
    };
    struct episode e = episode_start();
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        refuses(&e, rows[i].tool, rows[i].args, rows[i].want);
    own_json nul = json_pack("{s:s#}", "file_path", "a\0b", 3);
    struct tool_result r = tools_call(e.t, &e.a, S("Read"), nul);
    assert_true(r.failed);
    assert_non_null(strstr(r.text.ptr, "'file_path' holds a NUL"));
    r = tools_call(e.t, &e.a, S("Read"), NULL);
    assert_non_null(strstr(r.text.ptr, "nothing instead of an object"));
    episode_end(&e);
}

static void schemas(void **state)
{
    static const struct {
        enum tool_shape shape;
        const char *outer, *schema;
    } rows[] = { { TOOL_OPENAI, "function", "parameters" },
                 { TOOL_ANTHROPIC, NULL, "input_schema" },
                 { TOOL_MCP, NULL, "inputSchema" } };
    static const char *const reading[] = { "BashOutput", "Read", "Glob", "Grep" };
    struct episode e = episode_start();
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        own_json all = tools_schema(e.t, rows[i].shape);
        assert_int_equal(json_array_size(all), TOOLS_BUILTIN);
        for (size_t k = 0; k < TOOLS_BUILTIN; k++) {
            json_t *one = json_array_get(all, k),
                   *in = rows[i].outer ? json_object_get(one, rows[i].outer) : one;
            json_t *schema = json_object_get(in, rows[i].schema);
            assert_non_null(
                tools_find(e.t, str_from(json_string_value(json_object_get(in, "name")))));
            assert_true(json_string_length(json_object_get(in, "description")) > 20);
            assert_string_equal(json_string_value(json_object_get(schema, "type")), "object");
            assert_true(json_is_false(json_object_get(schema, "additionalProperties")));
        }
    }
    own_json mcp = tools_schema(e.t, TOOL_MCP);
    size_t n = 0;
    for (size_t k = 0; k < TOOLS_BUILTIN; k++) {
        json_t *one = json_array_get(mcp, k);
        if (json_is_true(json_object_get(json_object_get(one, "annotations"), "readOnlyHint")))
            assert_string_equal(json_string_value(json_object_get(one, "name")), reading[n++]);
    }
    assert_int_equal(n, COUNT(reading));
    own_json edit = tool_schema(tools_find(e.t, S("MultiEdit")));
    own_mem char *text = json_dumps(edit, JSON_SORT_KEYS);
    assert_non_null(strstr(
        text, "\"edits\": {\"description\": \"Each applies to what the one before it left.\", "
              "\"items\": {\"additionalProperties\": false, \"properties\": {\"new_string\": "));
    assert_non_null(strstr(text,
                           "\"required\": [\"old_string\", \"new_string\"], \"type\": \"object\"}, "
                           "\"minItems\": 1, \"type\": \"array\"}"));
    assert_non_null(strstr(text, "\"required\": [\"file_path\", \"edits\"]"));
    own_json grep = tool_schema(tools_find(e.t, S("Grep")));
    own_mem char *grep_text = json_dumps(grep, JSON_SORT_KEYS);
    assert_non_null(
        strstr(grep_text, "\"enum\": [\"files_with_matches\", \"content\", \"count\"]"));
    assert_non_null(
        strstr(grep_text,
               "\"-A\": {\"description\": \"Lines after each match (content).\", \"maximum\": 50, "
               "\"type\": \"integer\"}"));
    episode_end(&e);
}

/* ---- rows of others ---- */

struct counter {
    int steps, drops;
};

static enum err_code say_run(struct tool_call *c, struct err *err)
{
    int64_t times = arg_int(c->args, "times", 1);
    (void)err;
    for (int64_t i = 0; i < times; i++)
        buf_addf(&c->text, "%lld %s\x01\xff\n", (long long)i,
                 arg_text(c->args, "word", S("none")).ptr);
    return OK;
}

static enum err_code refuse_run(struct tool_call *c, struct err *err)
{
    buf_addz(&c->text, "half a text");
    err_raise(err, ERR_TASK, "the task \x1b is wrong");
    return err_hint(err, "mend it");
}

static enum err_code slow_run(struct tool_call *c, struct err *err)
{
    (void)err;
    c->pending = true;
    c->until_ms = clock_ms() + 5;
    c->work = c->context;
    return OK;
}

static enum err_code slow_step(struct tool_call *c, struct err *err)
{
    struct counter *n = c->work;
    c->until_ms = clock_ms() + 5;
    if (++n->steps < 3)
        return OK;
    if (arg_flag(c->args, "fail", false))
        return err_raise(err, ERR_WORKER, "it broke");
    c->pending = false;
    buf_addf(&c->text, "done in %d steps", n->steps);
    return OK;
}

static void slow_drop(struct tool_call *c)
{
    ((struct counter *)c->work)->drops++;
}

static const struct tool_param say_params[] = {
    { .name = "times", .help = "How often.", .kind = PARAM_INT, .max = 2000000 },
    { .name = "word", .help = "What.", .kind = PARAM_TEXT, .required = true },
};
static const struct tool_param slow_params[] = {
    { .name = "fail", .help = "Whether.", .kind = PARAM_FLAG }
};
static const struct tool more[] = {
    { .name = "Say",
      .description = "Says a word.",
      .param = say_params,
      .n_param = 2,
      .reads = true,
      .run = say_run },
    { .name = "Refuse", .description = "Refuses.", .run = refuse_run },
    { .name = "Slow",
      .description = "Waits.",
      .param = slow_params,
      .n_param = 1,
      .run = slow_run,
      .step = slow_step,
      .drop = slow_drop },
};

static void rows_of_others(void **state)
{
    struct counter n = { 0 };
    struct tool_set set = { more, COUNT(more), &n };
    struct episode e = episode_new();
    struct err err = { 0 };
    struct tools *t = NULL;
    (void)state;
    episode_open(&e, (struct tools_spec){ .set = &set, .n_sets = 1 });
    own_json all = tools_schema(e.t, TOOL_OPENAI);
    assert_int_equal(json_array_size(all), TOOLS_BUILTIN + COUNT(more));
    assert_string_equal(does(&e, "Say", "{\"word\": \"hi\", \"times\": 2}", ""),
                        "0 hi\xef\xbf\xbd\xef\xbf\xbd\n1 hi\xef\xbf\xbd\xef\xbf\xbd\n");
    refuses(&e, "Say", "{\"times\": 2000001, \"word\": \"\"}",
            "'times' is 2000001, wanted 0 to 2000000");
    refuses(&e, "Refuse", "{\"x\": 1}", "there is no parameter 'x'; it takes no parameters");
    assert_string_equal(refuses(&e, "Refuse", "{}", ""), "the task   is wrong\nmend it");
    const char *said =
        does(&e, "Say", "{\"word\": \"hi\", \"times\": 5000}",
             "0 hi|4999 hi|bytes left out; the whole output is in|for Read and Grep");
    assert_true(strlen(said) < 45000); /* what is no UTF-8 takes three bytes for one */
    does(&e, "Say", "{\"word\": \"hi\", \"times\": 2000000}",
         "[the end is missing: more than 8388608 bytes]");
    does(&e, "Slow", "{}", "done in 3 steps");
    assert_int_equal(n.drops, 0);
    n.steps = 0;
    refuses(&e, "Slow", "{\"fail\": true}", "it broke");
    assert_int_equal(n.drops, 1);
    n.steps = 0;
    struct tool_call *c = tool_call_begin(e.t, &e.a, S("Slow"), json_object());
    assert_false(tool_call_done(c));
    assert_true(tool_call_end(c).failed);
    assert_int_equal(n.drops, 2);
    struct tool twice = more[0];
    twice.name = "Read";
    struct tool_set bad = { &twice, 1, NULL };
    assert_int_equal(
        tools_open(&(struct tools_spec){ .workspace = e.dir, .set = &bad, .n_sets = 1 }, &t, &err),
        ERR_USAGE);
    assert_string_equal(err.text, "two tools are named 'Read'");
    json_decref((json_t *)(uintptr_t)c->args);
    episode_end(&e);
}

/* ---- random arguments ---- */

static uint64_t seed;

static unsigned dice(unsigned n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(seed >> 33) % n;
}

static json_t *random_text(void)
{
    static const char *const words[] = {
        "",    "a.txt", "sub/b.txt", "..",     "/",       "/etc/passwd", "*",          "**/*",
        "(",   "a|b",   "[a",        "bash_1", "content", "count",       "pending",    "x\ny",
        "\\n", "a",     "\xc3\xa9",  "{a,b}",  "fifo",    "link",        "in_progress"
    };
    char bytes[64];
    if (dice(3) > 0)
        return json_string(words[dice(COUNT(words))]);
    size_t n = dice(sizeof bytes);
    for (size_t i = 0; i < n; i++)
        bytes[i] = (char)dice(256);
    return json_stringn_nocheck(bytes, n);
}

static json_t *random_value(const struct tool_param *p, int depth);

static json_t *random_object(const struct tool_param *p, size_t n, int depth)
{
    json_t *o = json_object();
    for (size_t i = 0; i < n; i++)
        if (p[i].required ? dice(20) > 0 : dice(3) == 0)
            json_object_set_new(o, p[i].name, random_value(&p[i], depth + 1));
    if (dice(20) == 0)
        json_object_set_new_nocheck(o, "wrong\xff", random_text());
    return o;
}

static json_t *random_value(const struct tool_param *p, int depth)
{
    bool right = dice(8) > 0;
    enum param_kind kind = right ? p->kind : (enum param_kind)dice(5);
    if (!right && dice(4) == 0)
        return json_null();
    switch (kind) {
    case PARAM_TEXT:
    case PARAM_CHOICE:
        return random_text();
    case PARAM_INT:
        return dice(4) == 0 ? json_real(dice(1000) / 7.0 - 20)
                            : json_integer((int64_t)dice(100) - (dice(9) == 0 ? 99 : 0));
    case PARAM_FLAG:
        return json_boolean(dice(2));
    case PARAM_LIST:
        break;
    }
    json_t *list = json_array();
    for (unsigned i = dice(4); i > 0 && depth < 3; i--)
        json_array_append_new(list, random_object(p->item, p->n_item, depth));
    return list;
}

static bool is_plain(struct str s)
{
    for (size_t n; s.len > 0; s = str_drop(s, n))
        if ((n = text_char(s)) == 0)
            return false;
    return true;
}

/* Whatever comes: an answer in valid UTF-8, within its bounds, and nothing outside is touched. */
static void random_arguments(void **state)
{
    struct tool rows[TOOLS_BUILTIN];
    struct episode e = episode_start();
    struct err err = { 0 };
    (void)state;
    assert_int_equal(tools_builtin(rows), TOOLS_BUILTIN);
    assert_int_equal(file_write(path_join(&e.a, e.top, "outside"), S("whole"), 0644, &err), OK);
    lay(&e, "a.txt", "a\nx\ny\n");
    lay(&e, "sub/b.txt", "\xc3\xa9 a a\r\n");
    assert_int_equal(mkfifo(path_join(&e.a, e.dir, "fifo"), 0600) |
                         symlink("..", path_join(&e.a, e.dir, "link")),
                     0);
    size_t failed = 0, rounds = 4000;
    for (seed = 1; seed != 0 && rounds > 0; rounds--) {
        own_arena a = { 0 };
        const struct tool *row =
            &rows[1 + dice(TOOLS_BUILTIN - 1)]; /* Bash is not to run at random */
        own_json args = random_object(row->param, row->n_param, 0);
        struct tool_result r = tools_call(e.t, &a, str_from(row->name), args);
        assert_true(is_plain(r.text));
        assert_true(r.text.len > 0 && r.text.len < 100000);
        failed += r.failed;
    }
    assert_true(failed > 500 && failed < 3900);
    struct str *names;
    size_t n;
    assert_int_equal(dir_list(&e.a, e.top, NULL, &names, &n, &err), OK);
    assert_int_equal(n, 1);
    assert_string_equal(held(&e, "../outside"), "whole");
    episode_end(&e);
}

/* ---- text, memory, the document ---- */

static void utf8(void **state)
{
    static const struct {
        const char *in;
        size_t n;
    } rows[] = {
        { "a", 1 },
        { "\xc3\xa9", 2 },
        { "\xe2\x82\xac", 3 },
        { "\xf0\x9f\x98\x80", 4 },
        { "\x80", 0 },
        { "\xc0\xaf", 0 },
        { "\xc1\xbf", 0 },
        { "\xe0\x80\x80", 0 },
        { "\xed\xa0\x80", 0 },
        { "\xf0\x80\x80\x80", 0 },
        { "\xf4\x90\x80\x80", 0 },
        { "\xf5\x80\x80\x80", 0 },
        { "\xc3", 0 },
        { "\xe2\x82", 0 },
        { "\xc3(", 0 },
        { "", 0 },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(text_char(str_from(rows[i].in)), rows[i].n);
}

static void terminals(void **state)
{
    static const struct {
        const char *in, *out;
    } rows[] = {
        { "a\r\nb\r\n", "a\nb\n" },
        { "1%\r2%\r3%", "3%" },
        { "1%\r2%\r\n", "2%\n" },
        { "\x1b[1;32mok\x1b[0m", "ok" },
        { "\x1b]0;title\x1b\\x", "x" },
        { "\x1b]0;title\x07x", "x" },
        { "\x1b(Bx", "Bx" },
        { "x\x1b", "x" },
        { "x\x1b[12", "x" },
        { "\b\v", "\xef\xbf\xbd\xef\xbf\xbd" },
        { "\xc2\x9b"
          "x",
          "\xef\xbf\xbdx" },
        { "\n\n", "\n\n" },
        { "", "" },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        own_arena a = { 0 };
        struct buf b = { .arena = &a, .max = 1000 };
        text_terminal(&b, str_from(rows[i].in));
        if (strcmp(b.ptr ? b.ptr : "", rows[i].out) != 0)
            fail_msg("row %zu: '%s'", i, b.ptr);
    }
}

/* In pieces of all sizes: the same as at once, and no byte twice. */
static void rings(void **state)
{
    own_arena a = { 0 };
    struct ring r = { 0 };
    uint64_t lost = 0;
    unsigned char next = 0, want = 0;
    (void)state;
    seed = 7;
    for (int i = 0; i < 400; i++) {
        static unsigned char piece[3000];
        size_t n = dice(sizeof piece);
        for (size_t k = 0; k < n; k++)
            piece[k] = next++;
        ring_add(&r, (struct str){ (char *)piece, n });
        if (dice(5) > 0)
            continue;
        struct str got = ring_take(&r, &a, &lost);
        assert_int_equal(lost, 0);
        for (size_t k = 0; k < got.len; k++)
            assert_int_equal((unsigned char)got.ptr[k], want++);
    }
    ring_take(&r, &a, &lost);
    own_mem char *large = calloc(1, RING_BYTES + 10);
    memcpy(large + RING_BYTES, "0123456789", 10);
    ring_add(&r, (struct str){ large, RING_BYTES + 10 });
    struct str got = ring_take(&r, &a, &lost);
    assert_int_equal(lost, 10);
    assert_int_equal(got.len, RING_BYTES);
    assert_memory_equal(got.ptr + got.len - 10, "0123456789", 10);
    ring_fini(&r);
}

#if !defined(__SANITIZE_ADDRESS__)
static size_t in_use(void)
{
    return mallinfo2().uordblks;
}
#else
static size_t in_use(void)
{
    return 0; /* another allocator, which keeps no such book */
}
#endif

static void idle_is_small(void **state)
{
    struct episode e = episode_start();
    own_arena a = { 0 };
    (void)state;
    struct tools_spec spec = { .workspace = e.dir };
    struct tools *t = NULL;
    struct err err = { 0 };
    size_t before = in_use();
    assert_int_equal(tools_open(&spec, &t, &err), OK);
    for (int i = 0; i < 3; i++)
        assert_false(tools_call_text(t, &a, S("Bash"), S("{\"command\": \"seq 9000\"}")).failed);
    for (int i = 0; i < 700; i++) {
        struct arena_mark mark = arena_mark(&a);
        const char *args = arena_fmt(&a, "{\"file_path\": \"g%d\", \"content\": \"x\"}", i);
        assert_false(tools_call_text(t, &a, S("Write"), str_from(args)).failed);
        arena_rewind(&a, mark);
    }
    arena_fini(&a); /* what was told is the caller's */
    size_t now = in_use();
    assert_true(now - before < 64 << 10);
    tools_close(t);
    episode_end(&e);
}

static void document_is_fresh(void **state)
{
    own_arena a = { 0 };
    struct err err = { 0 };
    struct tool rows[TOOLS_BUILTIN];
    struct str text;
    (void)state;
    tools_builtin(rows);
    const struct tool_set set = { rows, TOOLS_BUILTIN, NULL };
    struct str table = tool_table(&a, &set, 1);
    assert_int_equal(file_read(&a, CA_SOURCE_DIR "/docs/tools.md", 1 << 20, &text, &err), OK);
    if (memmem(text.ptr, text.len, table.ptr, table.len) == NULL)
        fail_msg("docs/tools.md wants this table:\n%s", table.ptr);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments),
        cmocka_unit_test(schemas),
        cmocka_unit_test(rows_of_others),
        cmocka_unit_test(random_arguments),
        cmocka_unit_test(utf8),
        cmocka_unit_test(terminals),
        cmocka_unit_test(rings),
        cmocka_unit_test(idle_is_small),
        cmocka_unit_test(document_is_fresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
