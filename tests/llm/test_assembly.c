/* Streams as servers send them, one a file: fixtures/NAME.sse gives the reply in NAME.json, however
 * it is cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/json.h"
#include "llm/assembly.h"
#include "sys/file.h"

#define FOLDER CA_SOURCE_DIR "/tests/llm/fixtures"
#define FIXTURES_MIN 80 /* a folder that lost its files must not pass */

static const char write_schema[] =
    "{\"type\":\"object\",\"properties\":{\"lines\":{\"type\":\"integer\"}}}";
static const struct chat_tool tools[] = {
    { .name = { "Write", 5 }, .schema = { write_schema, sizeof write_schema - 1 } },
};

static struct assembly_spec spec_of(const char *name)
{
    return (struct assembly_spec){
        .dialect = strncmp(name, "anthropic", 9) == 0 ? DIALECT_ANTHROPIC : DIALECT_OPENAI,
        .streamed = true,
        .think_open = strstr(name, "think-open") != NULL,
        .name_fragments = strstr(name, "name-fragments") != NULL,
        .tools = tools,
        .n_tools = COUNT(tools),
    };
}

/* The reply to `bytes`, fed in two pieces, or (cut == 0) byte for byte. */
static json_t *reply_to(const struct assembly_spec *spec, struct str bytes, size_t cut)
{
    own_arena a = { 0 };
    struct reply r;
    struct assembly *as = assembly_create(&a, spec);
    if (cut > 0) {
        assembly_feed(as, (struct str){ bytes.ptr, cut });
        assembly_feed(as, str_drop(bytes, cut));
    } else {
        for (size_t i = 0; i < bytes.len; i++)
            assembly_feed(as, (struct str){ bytes.ptr + i, 1 });
    }
    assembly_end(as, &r);
    return reply_json(&r);
}

/* Prints what came where it is not what was wanted. */
static bool same(const char *name, size_t cut, json_t *wanted, json_t *got)
{
    if (json_equal(wanted, got))
        return true;
    own_mem char *g = json_dumps(got, JSON_INDENT(1) | JSON_SORT_KEYS);
    print_error("%s cut at %zu gives\n%s\n", name, cut, g);
    return false;
}

static void fixtures(void **state)
{
    own_arena a = { 0 };
    struct err err = { 0 };
    struct str *names, bytes, text;
    size_t n, bad = 0;
    (void)state;
    assert_int_equal(dir_list(&a, FOLDER, (const char *const[]){ ".sse", NULL }, &names, &n, &err),
                     OK);
    assert_true(n >= FIXTURES_MIN);
    for (size_t i = 0; i < n; i++) {
        const char *name = str_z(&a, names[i]), *path = path_join(&a, FOLDER, name);
        const char *want_path = arena_fmt(&a, "%.*s.json", (int)strlen(path) - 4, path);
        struct assembly_spec spec = spec_of(name);
        own_json wanted = NULL;
        assert_int_equal(file_read(&a, path, 1 << 20, &bytes, &err), OK);
        if (file_read(&a, want_path, 1 << 20, &text, &err) == OK)
            assert_int_equal(json_parse(text, 1 << 20, &wanted, &err), OK);
        bool right = true;
        for (size_t cut = 0; right && cut <= bytes.len; cut++) {
            own_json got = reply_to(&spec, bytes, cut);
            right = same(name, cut, wanted, got);
        }
        bad += !right;
    }
    assert_int_equal(bad, 0);
}

/* ---- what no file can hold ---- */

static void feed_event(struct assembly *as, const json_t *o)
{
    own_mem char *z = json_dumps(o, JSON_COMPACT);
    assert_true(assembly_feed(as, S("data: ")));
    assert_true(assembly_feed(as, str_from(z)));
    assert_true(assembly_feed(as, S("\n\n")));
}

static void two_megabytes_of_arguments_in_tokens(void **state)
{
    own_arena a = { 0 };
    struct reply r;
    struct assembly_spec spec = { .dialect = DIALECT_OPENAI,
                                  .streamed = true,
                                  .bytes_max = (size_t)256 << 20 };
    struct assembly *as = assembly_create(&a, &spec);
    const size_t n = 2 << 20, piece = 4;
    (void)state;
    own_json start = json_pack("{s:[{s:i,s:{s:[{s:i,s:s,s:{s:s,s:s}}]}}]}", "choices", "index", 0,
                               "delta", "tool_calls", "index", 0, "id", "a", "function", "name",
                               "Write", "arguments", "{\"content\":\"");
    own_json middle = json_pack("{s:[{s:i,s:{s:[{s:i,s:{s:s}}]}}]}", "choices", "index", 0, "delta",
                                "tool_calls", "index", 0, "function", "arguments", "x+y;");
    own_json close = json_pack("{s:[{s:i,s:{s:[{s:i,s:{s:s}}]},s:s}]}", "choices", "index", 0,
                               "delta", "tool_calls", "index", 0, "function", "arguments", "\"}",
                               "finish_reason", "tool_calls");
    feed_event(as, start);
    for (size_t i = 0; i < n; i += piece)
        feed_event(as, middle);
    feed_event(as, close);
    assert_false(assembly_feed(as, S("data: [DONE]\n\n")));
    assembly_end(as, &r);
    assert_int_equal(r.end, REPLY_STOP);
    assert_int_equal(r.n_calls, 1);
    assert_int_equal(r.calls[0].args.len, n + strlen("{\"content\":\"\"}"));
    assert_false(r.calls[0].broken);
    assert_true(a.used < 10 * n); /* memory grows with the answer, not with its pieces */
}

static void bounds(void **state)
{
    own_arena a = { 0 };
    struct reply r;
    struct assembly_spec spec = { .dialect = DIALECT_OPENAI, .streamed = true, .bytes_max = 100 };
    struct assembly *as = assembly_create(&a, &spec);
    (void)state;
    for (int i = 0; i < 10; i++)
        assert_true(assembly_feed(as, S("data: xxxx")));
    assert_false(assembly_feed(as, S("y")));
    assembly_end(as, &r);
    assert_int_equal(r.end, REPLY_FAILED);
    assert_int_equal(r.fault.kind, FAULT_LIMIT);

    spec.bytes_max = 0;
    as = assembly_create(&a, &spec);
    bool goes_on = true;
    for (int i = 0; goes_on && i <= ASSEMBLY_CALLS_MAX; i++)
        goes_on = assembly_feed(
            as, str_from(arena_fmt(&a,
                                   "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":%d,"
                                   "\"id\":\"c%d\"}]}}]}\n\n",
                                   i, i)));
    assert_false(goes_on);
    assembly_end(as, &r);
    assert_int_equal(r.fault.kind, FAULT_LIMIT);
    assert_non_null(strstr(r.fault.message.ptr, "more than 256 calls"));
}

static void minted_ids_follow_the_seed(void **state)
{
    static const char stream[] =
        "data: "
        "{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"name\":\"A\"}},"
        "{\"index\":1,\"function\":{\"name\":\"B\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\n";
    own_arena a = { 0 };
    struct reply r[3];
    (void)state;
    for (uint64_t i = 0; i < 3; i++) {
        struct assembly_spec spec = { .dialect = DIALECT_OPENAI, .id_seed = i / 2 };
        struct assembly *as = assembly_create(&a, &spec);
        assembly_feed(as, str_from(stream));
        assembly_end(as, &r[i]);
        assert_int_equal(r[i].n_calls, 2);
        assert_true(str_starts(r[i].calls[0].id, S("call_")) && r[i].calls[0].id.len <= 40);
        assert_false(str_eq(r[i].calls[0].id, r[i].calls[1].id));
    }
    assert_true(str_eq(r[0].calls[0].id, r[1].calls[0].id));
    assert_false(str_eq(r[0].calls[0].id, r[2].calls[0].id));
}

static void a_prompt_that_was_cut_is_noticed(void **state)
{
    static const struct {
        int tokens;
        bool cut;
    } rows[] = { { 2048, true }, { 9000, false } };
    own_arena a = { 0 };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct assembly_spec spec = { .dialect = DIALECT_OPENAI, .prompt_bytes = 32000 };
        struct assembly *as = assembly_create(&a, &spec);
        struct reply r;
        assembly_feed(as, str_from(arena_fmt(&a,
                                             "{\"choices\":[{\"message\":{\"content\":\"x\"},"
                                             "\"finish_reason\":\"stop\"}],\"usage\":"
                                             "{\"prompt_tokens\":%d,\"completion_tokens\":1}}",
                                             rows[i].tokens)));
        assembly_end(as, &r);
        assert_int_equal(!!(r.notes & NOTE_PROMPT_CUT), rows[i].cut);
    }
}

static void refusals_in_words(void **state)
{
    static const struct {
        const char *text;
        bool refuses;
    } rows[] = {
        { "I'm sorry, but I can't assist with that.", true },
        { "I cannot help with this request.", true },
        { "Sorry, I must decline.", true },
        { "**I'm unable to help** with that.", true },
        { "I can't find the file; I will search for it.", false },
        { "Sorry, I misread the shape. The fix follows.", false },
        { "I cannot provide a faster kernel:\n```\ncode\n```", false },
        { "", false },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(reply_refuses(str_from(rows[i].text)), rows[i].refuses);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fixtures),
        cmocka_unit_test(two_megabytes_of_arguments_in_tokens),
        cmocka_unit_test(bounds),
        cmocka_unit_test(minted_ids_follow_the_seed),
        cmocka_unit_test(a_prompt_that_was_cut_is_noticed),
        cmocka_unit_test(refusals_in_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
