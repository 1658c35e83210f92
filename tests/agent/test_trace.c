/* Events to turns, messages, what the model saw, files. */
#include "tests/agent/fixture.h"

#include "agent/trace_diff.h"
#include "agent/trace_exec.h"

#define START "{\"v\":1,\"event\":\"run_start\",\"schema\":\"cuda-agent/episode/1\",\"seq\":0}\n"

static void turns_and_messages(void **state)
{
    (void)state;
    own_arena a = { 0 };
    own_trace t = fixture(&a, "episode");
    assert_int_equal(t.n_turns, 17); /* before the first, and sixteen */
    assert_int_equal(t.n_dropped, 3);
    for (size_t i = 0; i < t.n_turns; i++) {
        assert_true(t.turn[i].numbered);
        assert_int_equal(t.turn[i].turn, i);
    }
    for (size_t i = 0; i < t.n_messages; i++)
        assert_int_equal(t.message[i].index, i);
    assert_string_equal(t.message[0].kind, "task");
    assert_string_equal(t.message[1].kind, "answer");
    assert_string_equal(t.message[2].kind, "results");
    assert_int_equal(t.message[4].chat.n_parts, 3); /* turn 2: TodoWrite, Write, compile */
    assert_true(str_eq(t.message[4].chat.parts[1].name, S("Write")));
    assert_true(t.message[16].chat.parts[1].is_error); /* turn 8's Edit */
    assert_true(str_eq(trace_status(&t), S("submitted")));
    struct trace_outcome o = trace_outcome(&t);
    assert_true(o.passed && o.valid && !o.truncated && o.milestone == 3);
    assert_int_equal(trace_int(t.best_eval, "turn", -1), 14);
    for (size_t i = 0; i < t.n_events; i++) /* each result's call is found */
        if (trace_is(t.event[i], "tool_end")) {
            const struct chat_part *call = trace_call(&t, t.event[i]);
            assert_non_null(call);
            assert_true(str_eq(call->name, trace_text(t.event[i], "name")));
        }
}

static void rewrites(void **state)
{
    (void)state;
    own_arena a = { 0 };
    own_trace t = fixture(&a, "episode");
    struct chat real, seen;
    trace_chat(&a, &t, TRACE_REAL, &real);
    trace_chat(&a, &t, TRACE_SEEN, &seen);
    assert_int_equal(real.n_messages, t.n_messages);
    assert_int_equal(seen.n_messages, t.n_messages);
    assert_true(str_starts(real.messages[2].parts[1].text, S("     1\timport torch")));
    assert_true(str_starts(seen.messages[2].parts[1].text, S("[model.py, 14 lines")));
    says(real.messages[3].parts[2].args, "__global__");
    says(seen.messages[3].parts[2].args, "[26 lines]");
    assert_int_equal(seen.n_tools, 9);
    says(seen.tools[0].schema, "\"command\"");
}

#define MESSAGE(i, text)                                          \
    "{\"v\":1,\"event\":\"message\",\"seq\":" #i ",\"index\":" #i \
    ",\"kind\":\"task\",\"parts\":[{\"kind\":\"text\",\"text\":\"" text "\"}]}\n"
#define CONTEXT(rest) "{\"v\":1,\"event\":\"context\",\"seq\":9," rest "}\n"

static const struct {
    const char *log, *seen; /* texts, one after another; NULL: as `wrong` */
    const char *wrong;
} logs[] = {
    { START MESSAGE(0, "a") MESSAGE(1, "b") MESSAGE(2, "c"), "a b c ", NULL },
    /* a summary stands in the place of the first that went, and for earlier summaries */
    { START MESSAGE(0, "a") MESSAGE(1, "b") MESSAGE(2, "c")
          CONTEXT("\"kind\":\"summary\",\"dropped\":[1,2],\"summary\":\"S\"") MESSAGE(3, "d"),
      "a S d ", NULL },
    { START MESSAGE(0, "a") MESSAGE(1, "b") CONTEXT("\"dropped\":[1],\"summary\":\"S\"")
          MESSAGE(2, "c") CONTEXT("\"dropped\":[2],\"summary\":\"R\"") MESSAGE(3, "d"),
      "a R d ", NULL },
    { START MESSAGE(0, "a") CONTEXT("\"kind\":\"reset\",\"summary\":\"S\"") MESSAGE(1, "b"),
      "a S b ", NULL },
    /* of items that name nothing nothing comes */
    { START MESSAGE(0, "a")
          CONTEXT("\"items\":[{\"index\":0,\"part\":7,\"text\":\"x\"},"
                  "{\"index\":-1,\"part\":0,\"text\":\"x\"},{\"index\":5},7,"
                  "{\"index\":0,\"part\":0,\"text\":5}],\"dropped\":[-1,\"x\",99]"),
      "a ", NULL },
    { START CONTEXT("\"items\":5,\"dropped\":{},\"summary\":[]") MESSAGE(0, "a"), "a ", NULL },
    /* unknown events, unknown members, members of other types */
    { START "{\"v\":1,\"event\":\"weather\",\"turn\":\"x\",\"seq\":[]}\n" MESSAGE(0, "a"), "a ",
      NULL },
    { START "{\"v\":1,\"event\":\"message\",\"index\":0,\"parts\":[5,{\"kind\":\"new\"},{\"kind\":"
            "\"text\",\"text\":\"a\"}]}\n",
      "  a ", NULL },
    /* what a resumed run does not count */
    { START MESSAGE(0, "a") MESSAGE(
          1, "b") "{\"v\":1,\"event\":\"resumed\",\"seq\":2,\"dropped_from\":1}\n" MESSAGE(3, "c"),
      "a c ", NULL },
    { START MESSAGE(0, "a") "{\"v\":1,\"event\":\"mess", "a ", NULL },
    { "", "", NULL },
    { START "{\"v\":1,\"event\"}\n" MESSAGE(0, "a"), NULL, "line 2: JSON line 1" },
    { START "\n", NULL, "line 2" },
    { START "{\"v\":2,\"event\":\"message\"}\n", NULL, "line 2: version 2, wanted 1" },
    { START "{\"v\":1}\n", NULL, "line 2: 'event' is missing" },
    { START "[1]\n", NULL, "line 2" },
    { START "{\"v\":1,\"event\":\"message\",\"text\":\"\xff\"}\n", NULL, "line 2" },
    { MESSAGE(0, "a"), NULL, "there is no run_start" },
    { "{\"v\":1,\"event\":\"run_start\",\"schema\":\"other/1\"}\n", NULL,
      "schema 'other/1', wanted 'cuda-agent/episode/1'" },
};

static void small_logs(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(logs); i++) {
        own_arena a = { 0 };
        own_trace t = { 0 };
        struct err err = { 0 };
        struct chat chat;
        enum err_code code = trace_parse(&a, str_from(logs[i].log), &t, &err);
        if (logs[i].wrong != NULL) {
            if (code != ERR_FORMAT || strstr(err.text, logs[i].wrong) == NULL)
                fail_msg("row %zu: '%s', wanted '%s'", i, err.text, logs[i].wrong);
            continue;
        }
        if (code != OK)
            fail_msg("row %zu: %s", i, err.text);
        trace_chat(&a, &t, TRACE_SEEN, &chat);
        struct buf b = { .arena = &a, .max = 1000 };
        for (size_t m = 0; m < chat.n_messages; m++)
            for (size_t k = 0; k < chat.messages[m].n_parts; k++) {
                buf_add(&b, chat.messages[m].parts[k].text);
                buf_addz(&b, " ");
            }
        if (!str_eq((struct str){ b.ptr, b.len }, str_from(logs[i].seen)))
            fail_msg("row %zu: '%s', wanted '%s'", i, b.ptr, logs[i].seen);
    }
}

/* Results join behind their answer, by the order of the calls, whatever comes between. */
static void results_in_order(void **state)
{
    (void)state;
    static const char log[] = START
        "{\"v\":1,\"event\":\"response\",\"turn\":1,\"index\":0,\"parts\":[{\"kind\":\"call\","
        "\"id\":\"x\"},{\"kind\":\"call\",\"id\":\"y\"}]}\n"
        "{\"v\":1,\"event\":\"tool_end\",\"turn\":1,\"id\":\"z\",\"text\":\"3\"}\n"
        "{\"v\":1,\"event\":\"message\",\"index\":2,\"kind\":\"steer\",\"parts\":[]}\n"
        "{\"v\":1,\"event\":\"tool_end\",\"turn\":1,\"id\":\"y\",\"text\":\"2\"}\n"
        "{\"v\":1,\"event\":\"tool_end\",\"turn\":1,\"id\":\"x\",\"text\":\"1\"}\n"
        "{\"v\":1,\"event\":\"response\",\"turn\":1,\"index\":3,\"parts\":[]}\n"
        "{\"v\":1,\"event\":\"tool_end\",\"turn\":1,\"id\":\"w\",\"text\":\"4\"}\n";
    own_arena a = { 0 };
    own_trace t = { 0 };
    struct err err = { 0 };
    assert_int_equal(trace_parse(&a, str_from(log), &t, &err), OK);
    assert_int_equal(t.n_messages, 5);
    assert_int_equal(t.message[1].chat.n_parts, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(t.message[1].chat.parts[i].text.ptr[0], '1' + i);
    assert_int_equal(t.message[1].index, 1);
    assert_int_equal(t.message[2].index, 2);
    assert_int_equal(t.message[4].chat.n_parts, 1);
}

static void files(void **state)
{
    (void)state;
    own_arena a = { 0 };
    own_trace t = fixture(&a, "episode");
    own_trace bad = fixture(&a, "hostile");
    struct err err = { 0 };
    struct buf b = { .arena = &a, .max = 1 << 16 };
    struct str text;
    size_t n = 0;
    const char *top;
    assert_null(trace_tree(&t, -1));
    trace_diff(&t, trace_tree(&t, 3), trace_tree(&t, 4), &b);
    says((struct str){ b.ptr, b.len }, "data, dim / 2);\n+    softmax<<<rows");
    trace_diff(&t, trace_tree(&t, 7), trace_tree(&t, 6), &b);
    assert_int_equal(trace_object(&t, &a, S("../events.jsonl"), &text, &err), ERR_FORMAT);
    assert_int_equal(trace_object(&t, &a, S("00000000000000000000000000000000"), &text, &err),
                     ERR_MISSING);
    assert_int_equal(dir_temp(&a, "/tmp", "ca-trace", &top, &err), OK);
    const char *dir = path_join(&a, top, "files");
    assert_int_equal(trace_restore(&bad, trace_tree(&bad, 1), dir, &n, &err), ERR_FORMAT);
    says(str_from(err.text), "'../../outside' would lie outside");
    assert_false(path_exists(dir));
    assert_int_equal(trace_restore(&t, trace_tree(&t, 16), dir, &n, &err), OK);
    assert_int_equal(n, 2);
    assert_int_equal(file_read(&a, path_join(&a, dir, "kernels/softmax.cu"), 1 << 20, &text, &err),
                     OK);
    says(text, "rows, 128");
    assert_int_equal(trace_restore(&t, trace_tree(&t, 16), dir, &n, &err), ERR_STATE);
    assert_int_equal(dir_remove(top, &err), OK);
}

static const struct {
    const char *before, *after, *wanted;
} diffs[] = {
    { "a\nb\n", "a\nb\n", "" },
    { "", "a\n", "@@ -0,0 +1,1 @@\n+a\n" },
    { "a\n", "", "@@ -1,1 +0,0 @@\n-a\n" },
    { "a\nb\nc\n", "a\nx\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n" },
    { "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nx\n5\n6\n7\n8\n9\n",
      "@@ -2,6 +2,7 @@\n 2\n 3\n 4\n+x\n 5\n 6\n 7\n" },
    { "a\n2\n3\n4\n5\n6\n7\n8\n9\nz\n", "b\n2\n3\n4\n5\n6\n7\n8\n9\ny\n",
      "@@ -1,4 +1,4 @@\n-a\n+b\n 2\n 3\n 4\n@@ -7,4 +7,4 @@\n 7\n 8\n 9\n-z\n+y\n" },
};

/* The new text, as a diff without context between says it. */
static void applies(struct arena *a, struct str before, struct str after)
{
    struct buf b = { .arena = a, .max = 1 << 22 }, got = { .arena = a, .max = 1 << 22 };
    diff_unified(before, after, &b);
    struct str diff = { b.ptr, b.len }, old = before, line, skip;
    size_t at = 1;
    while (str_cut(&diff, '\n', &line)) {
        if (line.ptr[0] == '@') {
            size_t from = strtoul(line.ptr + 4, NULL, 10), n = 0;
            const char *comma = strchr(line.ptr, ',');
            n = strtoul(comma + 1, NULL, 10);
            from += n == 0;
            for (; at < from && str_cut(&old, '\n', &skip); at++)
                buf_addf(&got, "%.*s\n", STR_FMT(skip));
            continue;
        }
        if (line.ptr[0] != '+') {
            assert_true(str_cut(&old, '\n', &skip));
            assert_true(str_eq(skip, str_drop(line, 1)));
            at++;
        }
        if (line.ptr[0] != '-')
            buf_addf(&got, "%.*s\n", STR_FMT(str_drop(line, 1)));
    }
    while (str_cut(&old, '\n', &skip))
        buf_addf(&got, "%.*s\n", STR_FMT(skip));
    if (!str_eq((struct str){ got.ptr, got.len }, after))
        fail_msg("'%.*s' to '%.*s': %.*s gives '%.*s'", STR_FMT(before), STR_FMT(after), (int)b.len,
                 b.ptr, (int)got.len, got.ptr);
}

static struct str text_random(struct arena *a, unsigned *seed, int lines, int kinds)
{
    struct buf b = { .arena = a, .max = 1 << 20 };
    for (int i = 0; i < lines; i++) {
        *seed = *seed * 1103515245 + 12345;
        buf_addf(&b, "%u\n", (*seed >> 16) % (unsigned)kinds);
    }
    return (struct str){ b.ptr, b.len };
}

static void differences(void **state)
{
    (void)state;
    own_arena a = { 0 };
    unsigned seed = 1;
    for (size_t i = 0; i < COUNT(diffs); i++) {
        struct buf b = { .arena = &a, .max = 4096 };
        diff_unified(str_from(diffs[i].before), str_from(diffs[i].after), &b);
        assert_string_equal(b.ptr ? b.ptr : "", diffs[i].wanted);
    }
    for (int i = 0; i < 1500; i++) {
        struct str before = text_random(&a, &seed, i % 23, 3 + i % 5);
        applies(&a, before, text_random(&a, &seed, i % 19, 3 + i % 5));
    }
    /* past the bound of changes, too */
    struct str before = text_random(&a, &seed, 2000, 100000);
    applies(&a, before, text_random(&a, &seed, 2000, 100000));
}

static const struct {
    const char *text, *normal;
} normals[] = {
    { "[exit code 0; 0.1 s]", "[exit code 0; T]" },
    { "took 12ms and 3.5 seconds", "took T and T" },
    { "read /data/out/attempt-1/workspace/a.cu", "read /workspace/a.cu" },
    { "'/workspace/a.cu' /workspaces/b", "'/workspace/a.cu' /workspaces/b" },
    { "/tmp/x/spill/1.txt", "/tool-output/1.txt" },
    { "-rw-r--r-- 1 u u 12 Jan  2 03:04 a", "-rw-r--r-- 1 u u 12 T T a" },
    { "2026-01-02T03:04:05.678Z end", "T end" },
    { "line 12: 34 misses", "line 12: 34 misses" },
};

static void normal_texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(normals); i++) {
        own_arena a = { 0 };
        struct str s = exec_normal(&a, str_from(normals[i].text));
        if (!str_eq(s, str_from(normals[i].normal)))
            fail_msg("'%s' became '%.*s', wanted '%s'", normals[i].text, STR_FMT(s),
                     normals[i].normal);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turns_and_messages),
        cmocka_unit_test(rewrites),
        cmocka_unit_test(small_logs),
        cmocka_unit_test(results_in_order),
        cmocka_unit_test(files),
        cmocka_unit_test(differences),
        cmocka_unit_test(normal_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
