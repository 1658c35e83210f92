/* Conversations as bodies of requests, in both dialects; tokens in and out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/json.h"
#include "llm/generate.h"
#include "llm/request.h"

#define TEXT(z)                                        \
    {                                                  \
        .kind = CHAT_TEXT, .text = { z, sizeof z - 1 } \
    }
#define CALL(i, n, a)                                                                        \
    {                                                                                        \
        .kind = CHAT_CALL, .id = { i, sizeof i - 1 }, .name = { n, sizeof n - 1 }, .args = { \
            a,                                                                               \
            sizeof a - 1                                                                     \
        }                                                                                    \
    }
#define RESULT(i, z)                                                                \
    {                                                                               \
        .kind = CHAT_RESULT, .id = { i, sizeof i - 1 }, .text = { z, sizeof z - 1 } \
    }
#define SAYS(who, ...)                                                                          \
    {                                                                                           \
        .role = who, .parts = (const struct chat_part[]){ __VA_ARGS__ },                        \
        .n_parts = sizeof((const struct chat_part[]){ __VA_ARGS__ }) / sizeof(struct chat_part) \
    }
#define USER(...) SAYS(CHAT_USER, __VA_ARGS__)
#define MODEL(...) SAYS(CHAT_ASSISTANT, __VA_ARGS__)

static const struct chat_tool bash = { .name = { "Bash", 4 },
                                       .description = { "Runs.", 5 },
                                       .schema = { "{\"type\":\"object\"}", 17 } };

/* ---- normalising ---- */

static const char *told(struct arena *a, const struct chat *c)
{
    static const char *const marks[] = { [CHAT_TEXT] = "t",
                                         [CHAT_THINKING] = "k",
                                         [CHAT_SEALED] = "s",
                                         [CHAT_CALL] = "c",
                                         [CHAT_RESULT] = "r" };
    struct buf b = { .arena = a, .max = 4000 };
    for (size_t i = 0; i < c->n_messages; i++) {
        buf_addz(&b, c->messages[i].role == CHAT_USER ? "U" : "A");
        for (size_t k = 0; k < c->messages[i].n_parts; k++) {
            const struct chat_part *p = &c->messages[i].parts[k];
            struct str s = p->kind == CHAT_CALL || p->kind == CHAT_RESULT ? p->id : p->text;
            buf_addf(&b, " %s:%.*s%s", marks[p->kind], STR_FMT(s), p->is_error ? "!" : "");
        }
        buf_addz(&b, "; ");
    }
    return b.ptr ? b.ptr : "";
}

#define N 6
static const struct {
    const char *wanted;
    struct chat_message m[N]; /* up to one without parts that is no user's */
} histories[] = {
    { "U t:a; A t:b; ", { USER(TEXT("a")), MODEL(TEXT("b")) } },
    { "U t:a; A c:1; U r:1 t:more; ",
      { USER(TEXT("a")), MODEL(CALL("1", "Bash", "{}")), USER(TEXT("more"), RESULT("1", "x")) } },
    { "U t:a; A c:1 c:2; U r:1 r:2; ", /* results in messages of their own, out of order */
      { USER(TEXT("a")), MODEL(CALL("1", "Bash", "{}"), CALL("2", "Bash", "{}")),
        USER(RESULT("2", "y")), USER(RESULT("1", "x")) } },
    { "U t:a; A c:1; U r:1!; A t:b; ", /* no result */
      { USER(TEXT("a")), MODEL(CALL("1", "Bash", "{}")), USER(TEXT(" ")), MODEL(TEXT("b")) } },
    { "U t:a; A c:1; U r:1!; ", { USER(TEXT("a")), MODEL(CALL("1", "Bash", "{}")) } },
    { "U t:a t:b; ", { USER(TEXT("a")), USER(RESULT("9", "of nothing")), USER(TEXT("b")) } },
    { "U t:a; A t:b t:c; ", { USER(TEXT("a")), MODEL(TEXT("b")), MODEL(TEXT("c")) } },
    { "U t:a t:b; ", /* a turn that was cut, with what it had called */
      { USER(TEXT("a")),
        { .role = CHAT_ASSISTANT,
          .aborted = true,
          .parts = (const struct chat_part[]){ CALL("1", "B", "{}") },
          .n_parts = 1 },
        USER(RESULT("1", "x"), TEXT("b")) } },
    { "U t:a t:b; ", /* thinking alone is no turn */
      { USER(TEXT("a")), MODEL({ .kind = CHAT_THINKING, .text = { "hm", 2 } }), USER(TEXT("b")) } },
    { "U t:a; A c:1 c:1; U r:1 r:1!; ",
      { USER(TEXT("a")), MODEL(CALL("1", "Bash", "{}"), CALL("1", "Bash", "{}")),
        USER(RESULT("1", "x")) } },
};

static void histories_are_made_fit(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(histories); i++) {
        own_arena a = { 0 };
        struct chat in = { .messages = histories[i].m }, out, again;
        while (in.n_messages < N && histories[i].m[in.n_messages].n_parts > 0)
            in.n_messages++;
        chat_normalise(&a, &in, &out);
        assert_string_equal(told(&a, &out), histories[i].wanted);
        chat_normalise(&a, &out, &again);
        assert_string_equal(told(&a, &again), histories[i].wanted);
    }
}

static void tools_under_other_names(void **state)
{
    static const struct {
        const char *name;
        bool found;
    } rows[] = { { "Bash", true },  { "bash", true }, { "execute_bash", true },
                 { "shell", true }, { "Bas", false }, { "view", false },
                 { "", false } };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_ptr_equal(chat_tool_find(&bash, 1, str_from(rows[i].name)),
                         rows[i].found ? &bash : NULL);
}

/* ---- bodies ---- */

static const struct chat_message turns[] = {
    USER(TEXT("a\0b")),
    SAYS(CHAT_ASSISTANT, { .kind = CHAT_THINKING, .text = { "hm", 2 }, .seal = { "Ab=", 3 } },
         TEXT("Looking."), CALL("functions.Bash:0", "Bash", "{\"command\": \"ls\"}")),
    USER(RESULT("functions.Bash:0", "a.cu"), TEXT("go on")),
    SAYS(CHAT_ASSISTANT, { .kind = CHAT_THINKING, .text = { "ho", 2 } },
         CALL("functions.Bash:0", "Bash", "{\"comm")),
    USER({ .kind = CHAT_RESULT,
           .is_error = true,
           .id = { "functions.Bash:0", 16 },
           .text = { "no", 2 } }),
};
static const struct chat talk = { .system = { "Be brief.", 9 },
                                  .messages = turns,
                                  .n_messages = COUNT(turns),
                                  .tools = &bash,
                                  .n_tools = 1 };

static json_t *written(enum dialect d, const char *url, const char *settings,
                       const struct chat_sampling *s, const struct chat *c)
{
    struct compat compat = compat_for(d, str_from(url), S("m"));
    struct err err = { 0 };
    json_t *j = NULL;
    assert_int_equal(compat_set(&compat, str_from(settings), &err), OK);
    struct request r = { .dialect = d, .model = "m", .compat = &compat, .chat = c, .sampling = s };
    assert_string_equal(request_write(&r, &j, &err) == OK ? "" : err.text, "");
    return j;
}

static void is_json(json_t *got, const char *wanted)
{
    json_error_t at;
    own_json want = json_loads(wanted, JSON_DECODE_ANY, &at);
    assert_string_equal(want ? "" : at.text, "");
    if (!json_equal(got, want)) {
        own_mem char *g = json_dumps(got, JSON_INDENT(1) | JSON_ENCODE_ANY);
        print_error("%s\n", g);
    }
    assert_true(json_equal(got, want));
}

static const struct chat_sampling every = { .max_tokens = 2000,
                                            .has_temperature = true,
                                            .temperature = 0.5,
                                            .has_top_p = true,
                                            .top_p = 0.75,
                                            .has_seed = true,
                                            .seed = 7,
                                            .thinking = true,
                                            .thinking_tokens = 1500,
                                            .effort = CHAT_EFFORT_HIGH,
                                            .logprobs = true,
                                            .token_ids = true };

static void the_body_for_openai(void **state)
{
    (void)state;
    own_json j =
        written(DIALECT_OPENAI, "http://h", "back=tool_turns thinking=template", &every, &talk);
    is_json(
        j,
        "{\"model\":\"m\",\"max_tokens\":2000,\"temperature\":0.5,\"top_p\":0.75,\"seed\":7,"
        "\"logprobs\":true,\"return_token_ids\":true,\"stream\":true,"
        "\"stream_options\":{\"include_usage\":true},"
        "\"chat_template_kwargs\":{\"enable_thinking\":true,\"preserve_thinking\":true},"
        "\"tool_choice\":\"auto\",\"parallel_tool_calls\":true,"
        "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"Bash\",\"description\":\"Runs."
        "\","
        "\"parameters\":{\"type\":\"object\"}}}],"
        "\"messages\":[{\"role\":\"system\",\"content\":\"Be brief.\"},"
        "{\"role\":\"user\",\"content\":\"a\\ufffdb\"},"
        "{\"role\":\"assistant\",\"content\":\"Looking.\",\"reasoning_content\":\"hm\","
        "\"tool_calls\":[{\"id\":\"functions.Bash:0\",\"type\":\"function\",\"function\":{\"name\":"
        "\"Bash\",\"arguments\":\"{\\\"command\\\": \\\"ls\\\"}\"}}]},"
        "{\"role\":\"tool\",\"tool_call_id\":\"functions.Bash:0\",\"content\":\"a.cu\"},"
        "{\"role\":\"user\",\"content\":\"go on\"},"
        "{\"role\":\"assistant\",\"content\":\"\",\"reasoning_content\":\"ho\","
        "\"tool_calls\":[{\"id\":\"functions.Bash:0\",\"type\":\"function\",\"function\":{\"name\":"
        "\"Bash\",\"arguments\":\"{\\\"unparsed\\\":\\\"{\\\\\\\"comm\\\"}\"}}]},"
        "{\"role\":\"tool\",\"tool_call_id\":\"functions.Bash:0\",\"content\":\"no\"}]}");
}

static void the_body_for_anthropic(void **state)
{
    (void)state;
    own_json j = written(DIALECT_ANTHROPIC, "http://h", "", &every, &talk);
    json_t *messages = json_object_get(j, "messages");
    /* The two ids are made: right in form, different, and each result has its call's. */
    json_t *ids[4];
    for (int i = 0; i < 4; i++) {
        json_t *content = json_object_get(json_array_get(messages, (size_t)i + 1), "content");
        json_t *block = json_array_get(content, i == 0 ? 2 : 0);
        const char *key = i % 2 == 0 ? "id" : "tool_use_id";
        ids[i] = json_incref(json_object_get(block, key));
        assert_int_equal(json_string_length(ids[i]), 9);
        json_object_set_new(block, key, json_string(i < 2 ? "one" : "two"));
    }
    assert_true(json_equal(ids[0], ids[1]) && json_equal(ids[2], ids[3]));
    assert_false(json_equal(ids[0], ids[2]));
    for (int i = 0; i < 4; i++)
        json_decref(ids[i]);
    is_json(
        j,
        "{\"model\":\"m\",\"max_tokens\":2000,\"stream\":true,"
        "\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":1500},"
        "\"system\":[{\"type\":\"text\",\"text\":\"Be "
        "brief.\",\"cache_control\":{\"type\":\"ephemeral\"}}],"
        "\"tool_choice\":{\"type\":\"auto\"},"
        "\"tools\":[{\"name\":\"Bash\",\"description\":\"Runs.\",\"input_schema\":{\"type\":"
        "\"object\"},"
        "\"cache_control\":{\"type\":\"ephemeral\"}}],"
        "\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\\ufffdb\"}]}"
        ","
        "{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"hm\","
        "\"signature\":"
        "\"Ab=\"},{\"type\":\"text\",\"text\":\"Looking.\"},{\"type\":\"tool_use\",\"id\":\"one\","
        "\"name\":\"Bash\",\"input\":{\"command\":\"ls\"}}]},"
        "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"one\","
        "\"content\":"
        "\"a.cu\"},{\"type\":\"text\",\"text\":\"go on\"}]},"
        "{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"two\",\"name\":"
        "\"Bash\","
        "\"input\":{\"unparsed\":\"{\\\"comm\"}}]},"
        "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"two\","
        "\"content\":"
        "\"no\",\"is_error\":true,\"cache_control\":{\"type\":\"ephemeral\"}}]}]}");
}

/* One setting changes one place: a path into the body, and what stands there (NULL: nothing). */
static void settings_change_the_body(void **state)
{
    static const struct {
        enum dialect dialect;
        const char *settings, *key, *value;
    } rows[] = {
        { DIALECT_OPENAI, "limit=max_completion_tokens", "max_completion_tokens", "2000" },
        { DIALECT_OPENAI, "limit=max_completion_tokens", "max_tokens", NULL },
        { DIALECT_OPENAI, "temperature=false", "temperature", NULL },
        { DIALECT_OPENAI, "top_p=false", "top_p", NULL },
        { DIALECT_OPENAI, "seed=false", "seed", NULL },
        { DIALECT_OPENAI, "logprobs=false", "logprobs", NULL },
        { DIALECT_OPENAI, "token_ids=false", "return_token_ids", NULL },
        { DIALECT_OPENAI, "stream=false", "stream", "false" },
        { DIALECT_OPENAI, "stream=false", "stream_options", NULL },
        { DIALECT_OPENAI, "stream_usage=false", "stream_options", NULL },
        { DIALECT_OPENAI, "tool_choice=false", "tool_choice", NULL },
        { DIALECT_OPENAI, "parallel_calls=false", "parallel_tool_calls", NULL },
        { DIALECT_OPENAI, "thinking=effort", "reasoning_effort", "\"high\"" },
        { DIALECT_ANTHROPIC, "thinking=adaptive", "thinking", "{\"type\":\"adaptive\"}" },
        { DIALECT_ANTHROPIC, "thinking=none", "temperature", "0.5" },
        { DIALECT_ANTHROPIC, "thinking=none temperature=false", "temperature", NULL },
        { DIALECT_ANTHROPIC, "cache_control=false", "system",
          "[{\"type\":\"text\",\"text\":\"Be brief.\"}]" },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        own_json j = written(rows[i].dialect, "http://h", rows[i].settings, &every, &talk);
        json_t *v = json_object_get(j, rows[i].key);
        if (rows[i].value == NULL)
            assert_null(v);
        else
            is_json(v, rows[i].value);
    }
}

static const struct chat_message short_turns[] = {
    SAYS(CHAT_ASSISTANT, { .kind = CHAT_THINKING, .text = { "hm", 2 } }, CALL("x|y", "Bash", "{}")),
};

static void settings_change_the_messages(void **state)
{
    static const struct {
        enum dialect dialect;
        const char *settings, *first; /* the assistant's message, ids aside */
    } rows[] = {
#define CALLS(a)                                                                             \
    "\"tool_calls\":[{\"id\":\"x|y\",\"type\":\"function\",\"function\":{\"name\":\"Bash\"," \
    "\"arguments\":" a "}}]"
        { DIALECT_OPENAI, "", "{\"role\":\"assistant\",\"content\":\"\"," CALLS("\"{}\"") "}" },
        { DIALECT_OPENAI, "null_content=true args_object=true",
          "{\"role\":\"assistant\",\"content\":null," CALLS("{}") "}" },
        { DIALECT_OPENAI, "back=always reasoning=reasoning",
          "{\"role\":\"assistant\",\"content\":\"\",\"reasoning\":\"hm\"," CALLS("\"{}\"") "}" },
        { DIALECT_ANTHROPIC, "ids=any",
          "{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"x|y\",\"name\":"
          "\"Bash\","
          "\"input\":{}}]}" },
        { DIALECT_ANTHROPIC, "ids=any thinking_text=true",
          "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"hm\"},{\"type\":"
          "\"tool_use\","
          "\"id\":\"x|y\",\"name\":\"Bash\",\"input\":{}}]}" },
#undef CALLS
    };
    const struct chat c = { .messages = short_turns, .n_messages = 1 };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        own_json j = written(rows[i].dialect, "http://h", rows[i].settings, &every, &c);
        json_t *messages = json_object_get(j, "messages");
        bool claude = rows[i].dialect == DIALECT_ANTHROPIC; /* there the user speaks first */
        is_json(json_array_get(messages, claude), rows[i].first);
        assert_int_equal(json_array_size(messages), claude ? 3 : 2);
        assert_int_equal(json_object_get(j, "tools") != NULL, claude);
    }
}

static void ids_in_each_form(void **state)
{
    static const struct {
        const char *settings;
        const char *id;
        bool kept;
        size_t len;
    } rows[] = {
        { "ids=any", "functions.Bash:0", true, 16 },
        { "ids=40", "functions.Bash:0", true, 16 },
        { "ids=40", "0123456789012345678901234567890123456789x", false, 9 },
        { "ids=anthropic", "toolu_01-x", true, 10 },
        { "ids=anthropic", "a|b", false, 9 },
        { "ids=9", "abcDEF123", true, 9 },
        { "ids=9", "call_1", false, 9 },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct chat_part p = CALL("", "Bash", "{}");
        p.id = str_from(rows[i].id);
        const struct chat_message m = { .role = CHAT_ASSISTANT, .parts = &p, .n_parts = 1 };
        const struct chat c = { .messages = &m, .n_messages = 1 };
        own_json j = written(DIALECT_OPENAI, "http://h", rows[i].settings, &every, &c);
        json_t *call = json_array_get(
            json_object_get(json_array_get(json_object_get(j, "messages"), 0), "tool_calls"), 0);
        json_t *id = json_object_get(call, "id");
        assert_int_equal(strcmp(json_string_value(id), rows[i].id) == 0, rows[i].kept);
        assert_int_equal(json_string_length(id), rows[i].len);
        json_t *result = json_array_get(json_object_get(j, "messages"), 1);
        assert_true(json_equal(json_object_get(result, "tool_call_id"), id));
    }
}

static void a_schema_that_is_none(void **state)
{
    struct chat_tool bad = bash;
    struct compat compat = compat_for(DIALECT_OPENAI, S("http://h"), S("m"));
    struct err err = { 0 };
    json_t *j = NULL;
    (void)state;
    bad.schema = S("{");
    const struct chat c = { .tools = &bad, .n_tools = 1 };
    struct request r = { .model = "m", .compat = &compat, .chat = &c, .sampling = &every };
    assert_int_equal(request_write(&r, &j, &err), ERR_FORMAT);
    assert_non_null(strstr(err.text, "schema of tool 'Bash'"));
}

/* ---- tokens ---- */

static const int32_t prompt[] = { 1, 2 }, stop_at[] = { 9 };
static const struct generate ask = { .prompt = prompt,
                                     .n_prompt = 2,
                                     .max_tokens = 5,
                                     .temperature = 1,
                                     .top_p = 1,
                                     .has_seed = true,
                                     .seed = 3,
                                     .stop = stop_at,
                                     .n_stop = 1 };

static void requests_for_tokens(void **state)
{
    (void)state;
    own_json vllm = generate_write(GENERATE_VLLM, "m", &ask);
    is_json(vllm,
            "{\"model\":\"m\",\"prompt\":[1,2],\"max_tokens\":5,\"temperature\":1.0,\"top_p\":1.0,"
            "\"seed\":3,\"stop_token_ids\":[9],\"logprobs\":0,\"return_token_ids\":true,"
            "\"return_tokens_as_token_ids\":true,\"skip_special_tokens\":false}");
    own_json sglang = generate_write(GENERATE_SGLANG, "m", &ask);
    is_json(
        sglang,
        "{\"input_ids\":[1,2],\"return_logprob\":true,\"sampling_params\":{\"max_new_tokens\":5,"
        "\"temperature\":1.0,\"top_p\":1.0,\"sampling_seed\":3,\"stop_token_ids\":[9],"
        "\"skip_special_tokens\":false}}");
}

static void answers_of_tokens(void **state)
{
    static const struct {
        enum generate_api api;
        const char *body, *error;
        int32_t first;
        double logprob;
        size_t n, clamped;
        enum generate_end end;
    } rows[] = {
        { GENERATE_VLLM,
          "{\"choices\":[{\"token_ids\":[7,9],\"logprobs\":{\"token_logprobs\":[-0.5,-9999.0]},"
          "\"prompt_token_ids\":[1,2],\"finish_reason\":\"stop\"}]}",
          NULL, 7, -0.5, 2, 1, GENERATE_STOP },
        { GENERATE_VLLM,
          "{\"choices\":[{\"logprobs\":{\"tokens\":[\"token_id:7\"],\"token_logprobs\":"
          "[-Infinity]},\"finish_reason\":\"length\"}]}",
          NULL, 7, -9999, 1, 1, GENERATE_LENGTH },
        { GENERATE_SGLANG,
          "[{\"meta_info\":{\"output_token_logprobs\":[[null,7,null]],\"finish_reason\":"
          "{\"type\":\"abort\"}}}]",
          NULL, 7, -9999, 1, 1, GENERATE_ABORT },
        { GENERATE_VLLM,
          "{\"choices\":[{\"token_ids\":[7],\"logprobs\":{\"token_logprobs\":[-1,-2]}}]}",
          "1 token ids and 2 log-probabilities", 0, 0, 0, 0, 0 },
        { GENERATE_VLLM,
          "{\"choices\":[{\"token_ids\":[7],\"logprobs\":{\"token_logprobs\":[-1]},"
          "\"prompt_token_ids\":[1,3]}]}",
          "prompt token 1 is not what was sent", 0, 0, 0, 0, 0 },
        { GENERATE_VLLM,
          "{\"choices\":[{\"token_ids\":[7],\"logprobs\":{\"token_logprobs\":[-1]},"
          "\"prompt_token_ids\":[1]}]}",
          "2 prompt tokens were sent, 1 taken", 0, 0, 0, 0, 0 },
        { GENERATE_VLLM, "{\"choices\":[{\"text\":\"x\"}]}", "without token ids", 0, 0, 0, 0, 0 },
        { GENERATE_VLLM,
          "{\"choices\":[{\"logprobs\":{\"tokens\":[\"cat\"],\"token_logprobs\":[-1]}}]}",
          "a token id is not one", 0, 0, 0, 0, 0 },
        { GENERATE_SGLANG,
          "{\"output_ids\":[8],\"meta_info\":{\"output_token_logprobs\":[[-1,7,null]]}}",
          "token 0 has two ids", 0, 0, 0, 0, 0 },
        { GENERATE_SGLANG, "{\"text\":\"x\"}", "without output_token_logprobs", 0, 0, 0, 0, 0 },
        { GENERATE_SGLANG, "nothing", "not JSON", 0, 0, 0, 0, 0 },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        own_arena a = { 0 };
        struct err err = { 0 };
        struct generated g = { .n = 77 };
        enum err_code code = generate_read(&a, rows[i].api, &ask, str_from(rows[i].body), &g, &err);
        if (rows[i].error != NULL) {
            assert_int_equal(code, ERR_FORMAT);
            assert_non_null(strstr(err.text, rows[i].error));
            assert_int_equal(g.n, 77);
            continue;
        }
        assert_string_equal(code == OK ? "" : err.text, "");
        assert_int_equal(g.n, rows[i].n);
        assert_int_equal(g.ids[0], rows[i].first);
        assert_true(g.logprob[0] == rows[i].logprob);
        assert_int_equal(g.n_clamped, rows[i].clamped);
        assert_int_equal(g.end, rows[i].end);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(histories_are_made_fit),   cmocka_unit_test(tools_under_other_names),
        cmocka_unit_test(the_body_for_openai),      cmocka_unit_test(the_body_for_anthropic),
        cmocka_unit_test(settings_change_the_body), cmocka_unit_test(settings_change_the_messages),
        cmocka_unit_test(ids_in_each_form),         cmocka_unit_test(a_schema_that_is_none),
        cmocka_unit_test(requests_for_tokens),      cmocka_unit_test(answers_of_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
