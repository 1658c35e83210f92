/* Repairs, faults, events, the ladder: tables of what comes and what it is taken for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/json.h"
#include "llm/compat.h"
#include "llm/repair.h"
#include "llm/sse.h"
#include "llm/wire.h"

/* ---- server-sent events ---- */

static void events_and_their_names(void **state)
{
    static const struct {
        const char *bytes, *wanted; /* name=data| */
    } rows[] = {
        { "data: a\n\ndata: b\n\n", "=a|=b|" },
        { "event: x\ndata: a\n\ndata: b\n\n", "x=a|=b|" },
        { "data:a\r\n\r\ndata:  b\r\n\r\n", "=a|= b|" },
        { "data: a\rdata: b\r\r", "=a\nb|" },
        { "\xef\xbb\xbf"
          "data: a\n\n",
          "=a|" },
        { ": comment\ndata: a\n: more\n\n", "=a|" },
        { "id: 1\nretry: 2\nunknown\ndata\n\n", "=|" },
        { "event: lost\n\ndata: a\n\n", "=a|" },
        { "data: last", "=last|" },
        { "data: last\n", "=last|" },
        { "\n\n\n", "" },
        { "{\"error\":1}\n\n", "={\"error\":1}|" },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        own_arena a = { 0 };
        struct sse s;
        struct sse_event e;
        struct str bytes = str_from(rows[i].bytes);
        struct buf got = { .arena = &a, .max = 1000 };
        sse_init(&s, &a, 100);
        while (sse_feed(&s, &bytes, &e) == SSE_EVENT)
            buf_addf(&got, "%.*s=%.*s|", STR_FMT(e.name), STR_FMT(e.data));
        if (sse_end(&s, &e) == SSE_EVENT)
            buf_addf(&got, "%.*s=%.*s|", STR_FMT(e.name), STR_FMT(e.data));
        assert_string_equal(got.ptr ? got.ptr : "", rows[i].wanted);
    }
}

static void events_that_are_too_long(void **state)
{
    static const char *const rows[] = { "data: 0123456789", "data: 01234\ndata: 56789\n\n",
                                        ": 0123456789\n" };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        own_arena a = { 0 };
        struct sse s;
        struct sse_event e;
        struct str bytes = str_from(rows[i]), more = S("data: a\n\n");
        sse_init(&s, &a, i == 1 ? 11 : 10);
        if (i == 1)
            s.data.max = 9;
        assert_int_equal(sse_feed(&s, &bytes, &e), SSE_TOO_LONG);
        assert_int_equal(sse_feed(&s, &more, &e), SSE_TOO_LONG);
        assert_int_equal(sse_end(&s, &e), SSE_TOO_LONG);
    }
}

/* ---- repairs ---- */

static const char schema_text[] =
    "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"},\"x\":{\"type\":\"number\"},"
    "\"on\":{\"type\":\"boolean\"},\"s\":{\"type\":\"string\"},\"list\":{\"type\":\"array\","
    "\"items\":{\"type\":\"integer\"}},\"o\":{\"type\":\"object\",\"properties\":{\"n\":{\"type\":"
    "\"integer\"}}},\"any\":{\"type\":[\"string\",\"null\"]},\"one\":{\"anyOf\":[{\"type\":"
    "\"integer\"},{\"type\":\"null\"}]},\"free\":{}}}";

static void arguments_are_repaired(void **state)
{
    static const struct {
        const char *text, *wanted;
        unsigned repairs;
    } rows[] = {
        { "{\"s\":\"a\"}", "{\"s\":\"a\"}", 0 },
        { "", "{}", REPAIR_EMPTY },
        { " \n", "{}", REPAIR_EMPTY },
        { "null", "{}", REPAIR_EMPTY },
        { "{\"s\":\"a\nb\tc\"}", "{\"s\":\"a\\nb\\tc\"}", REPAIR_CONTROL },
        { "{\"s\":\"\\d \\' \\\\\"}", "{\"s\":\"\\\\d \\\\' \\\\\"}", REPAIR_CONTROL },
        { "{\"s\":\"\\ud83d\"}", "{\"s\":\"\xef\xbf\xbd\"}", REPAIR_UNICODE },
        { "{\"s\":\"\\ud83d\\ude00\"}", "{\"s\":\"\xf0\x9f\x98\x80\"}", 0 },
        { "{\"s\":\"a\\u0000b\"}",
          "{\"s\":\"a\xef\xbf\xbd"
          "b\"}",
          REPAIR_UNICODE },
        { "{\"s\":\"\xff\"}", "{\"s\":\"\xef\xbf\xbd\"}", REPAIR_UNICODE },
        { "{\"s\":\"a\"}</tool_call>", "{\"s\":\"a\"}", REPAIR_TAIL },
        { "{\"s\":\"a\"}{\"s\":\"a\"}", "{\"s\":\"a\"}", REPAIR_TAIL },
        { "{\"s\":\"a\nb\"}}", "{\"s\":\"a\\nb\"}", REPAIR_CONTROL | REPAIR_TAIL },
        { "\"{\\\"s\\\":\\\"a\\\"}\"", "{\"s\":\"a\"}", REPAIR_NESTED },
        { "{\"list\":\"[1,2]\"}", "{\"list\":[1,2]}", REPAIR_UNQUOTED },
        { "{\"o\":\"{\\\"n\\\":\\\"3\\\"}\"}", "{\"o\":{\"n\":3}}",
          REPAIR_UNQUOTED | REPAIR_COERCED },
        { "{\"s\":[\"a\",\"b\"]}", "{\"s\":\"ab\"}", REPAIR_JOINED },
        { "{\"s\":[\"a\",1]}", "{\"s\":[\"a\",1]}", 0 },
        { "{\"n\":\"3\",\"x\":\"1.5\",\"on\":\"True\"}", "{\"n\":3,\"on\":true,\"x\":1.5}",
          REPAIR_COERCED },
        { "{\"n\":3.0}", "{\"n\":3}", REPAIR_COERCED },
        { "{\"n\":3.5,\"on\":\"maybe\"}", "{\"n\":3.5,\"on\":\"maybe\"}", 0 },
        { "{\"x\":3}", "{\"x\":3}", 0 },
        { "{\"list\":[\"1\",2]}", "{\"list\":[1,2]}", REPAIR_COERCED },
        { "{\"any\":\"null\",\"one\":\"null\"}", "{\"any\":\"null\",\"one\":null}",
          REPAIR_COERCED },
        { "{\"free\":\"3\",\"other\":\"4\"}", "{\"free\":\"3\",\"other\":\"4\"}", 0 },
        { "{\"s\":\"[1]\"}", "{\"s\":\"[1]\"}", 0 },
    };
    own_json schema = json_loads(schema_text, 0, NULL);
    (void)state;
    assert_non_null(schema);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct err err = { 0 };
        own_json j = NULL;
        unsigned repairs = 0;
        assert_string_equal(
            repair_args(str_from(rows[i].text), schema, 1000, &j, &repairs, &err) == OK ? ""
                                                                                        : err.text,
            "");
        own_mem char *z = json_dumps(j, JSON_COMPACT | JSON_SORT_KEYS);
        assert_string_equal(z, rows[i].wanted);
        assert_int_equal(repairs, rows[i].repairs);
    }
}

static void arguments_past_help(void **state)
{
    static const struct {
        const char *text, *error;
        size_t max;
    } rows[] = {
        { "{\"s\":", "line 1, column 5", 100 },     { "{\n\"s\": x}", "line 2, column 6", 100 },
        { "{\"s\":\"a", "not JSON", 100 },          { "[1]", "not an object", 100 },
        { "\"words\"", "not an object", 100 },      { "3", "not an object", 100 },
        { "{\"s\":\"abcdefgh\"}", "limit 10", 10 },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct err err = { 0 };
        json_t *j = NULL;
        unsigned repairs;
        assert_true(repair_args(str_from(rows[i].text), NULL, rows[i].max, &j, &repairs, &err) !=
                    OK);
        assert_null(j);
        if (strstr(err.text, rows[i].error) == NULL)
            print_error("row %zu: %s\n", i, err.text);
        assert_non_null(strstr(err.text, rows[i].error));
    }
}

/* ---- text ---- */

static void text_is_cleaned(void **state)
{
    static const struct {
        const char *in;
        size_t n;
        const char *out;
    } rows[] = {
        { "plain", 5, "plain" },
        { "a\0b", 3,
          "a\xef\xbf\xbd"
          "b" },
        { "\xed\xa0\x80", 3, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" }, /* half a pair as UTF-8 */
        { "\xc0\x80", 2, "\xef\xbf\xbd\xef\xbf\xbd" },
        { "\xe2\x82\xac", 3, "\xe2\x82\xac" },
        { "\xe2\x82", 2, "\xef\xbf\xbd\xef\xbf\xbd" },
        { "\xf5\x80\x80\x80", 4, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
    };
    own_arena a = { 0 };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_true(
            str_eq(wire_clean(&a, (struct str){ rows[i].in, rows[i].n }), str_from(rows[i].out)));
}

/* ---- faults ---- */

static const struct fault_row {
    int status;
    const char *body;
    enum fault_kind kind;
    const char *param;
    int64_t prompt, window;
} faults[] = {
    { 401, "", FAULT_AUTH, "", 0, 0 },
    { 403, "{\"error\":{\"message\":\"no\"}}", FAULT_AUTH, "", 0, 0 },
    { 402, "{\"error\":{\"message\":\"Insufficient Balance\"}}", FAULT_QUOTA, "", 0, 0 },
    { 429, "{\"error\":{\"message\":\"slow\"}}", FAULT_RATE, "", 0, 0 },
    { 429, "{\"error\":{\"code\":\"insufficient_quota\"}}", FAULT_QUOTA, "", 0, 0 },
    { 429, "input is too long for the quota of this minute", FAULT_RATE, "", 0, 0 },
    { 408, "", FAULT_SERVER, "", 0, 0 },
    { 425, "", FAULT_SERVER, "", 0, 0 },
    { 500, "boom", FAULT_SERVER, "", 0, 0 },
    { 502, "<html>bad gateway</html>", FAULT_SERVER, "", 0, 0 },
    { 503, "Loading model", FAULT_OVERLOADED, "", 0, 0 },
    { 529,
      "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}",
      FAULT_OVERLOADED, "", 0, 0 },
    { 404, "{\"error\":{\"message\":\"model 'x' not found\"}}", FAULT_REQUEST, "", 0, 0 },
    { 307, "", FAULT_REDIRECT, "", 0, 0 },
    /* too long, in the words of each server */
    { 400, "{\"error\":{\"code\":\"context_length_exceeded\",\"message\":\"too long\"}}",
      FAULT_CONTEXT, "", 0, 0 },
    { 400,
      "{\"object\":\"error\",\"message\":\"This model's maximum context length is 4096 tokens. "
      "However, you requested 5000 tokens (4500 in the messages, 500 in the completion).\"}",
      FAULT_CONTEXT, "", 4500, 4096 },
    { 400,
      "{\"object\":\"error\",\"message\":\"This model's maximum context length is 4096 tokens. "
      "However, you requested 5000 tokens (3000 in the messages, 2000 in the completion).\"}",
      FAULT_ROOM, "", 3000, 4096 },
    { 400,
      "{\"error\":{\"message\":\"'max_tokens' or 'max_completion_tokens' is too large: 9000. This "
      "model's maximum context length is 8192 tokens and your request has 2000 input tokens\"}}",
      FAULT_ROOM, "", 2000, 8192 },
    { 400, "{\"message\":\"max_tokens must be at least 1, got -186.\"}", FAULT_CONTEXT, "", 0, 0 },
    { 400,
      "{\"message\":\"The input (9000 tokens) is longer than the model's context length (8192 "
      "tokens).\"}",
      FAULT_CONTEXT, "", 9000, 8192 },
    { 400,
      "{\"error\":{\"type\":\"exceed_context_size_error\",\"n_prompt_tokens\":9000,\"n_ctx\":8192,"
      "\"message\":\"the request exceeds the available context size\"}}",
      FAULT_CONTEXT, "", 9000, 8192 },
    { 400,
      "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"prompt is "
      "too "
      "long: 210000 tokens > 200000 maximum\"}}",
      FAULT_CONTEXT, "", 210000, 200000 },
    { 400,
      "{\"error\":{\"message\":\"input length and `max_tokens` exceed context limit: 190000 + "
      "20000 "
      "> 200000\"}}",
      FAULT_ROOM, "", 190000, 200000 },
    { 413, "", FAULT_CONTEXT, "", 0, 0 },
    { 400, "", FAULT_CONTEXT, "", 0, 0 },
    { 400, "{\"error\":{\"message\":\"Input token count exceeds the maximum\"}}", FAULT_CONTEXT, "",
      0, 0 },
    { 400, "{\"error\":{\"message\":\"Please reduce the length of the messages\"}}", FAULT_CONTEXT,
      "", 0, 0 },
    { 400,
      "{\"error\":{\"code\":\"string_above_max_length\",\"message\":\"string too long: exceeds the "
      "limit of 40\",\"param\":\"messages[3].tool_calls[0].id\"}}",
      FAULT_REQUEST, "messages[3].tool_calls[0].id", 0, 0 },
    /* fields */
    { 400,
      "{\"error\":{\"message\":\"Unsupported parameter: 'max_tokens' is not supported with this "
      "model. Use 'max_completion_tokens' instead.\",\"param\":\"max_tokens\"}}",
      FAULT_PARAMETER, "max_tokens", 0, 0 },
    { 422,
      "{\"detail\":[{\"loc\":[\"body\",\"seed\"],\"msg\":\"Extra inputs are not permitted\"}]}",
      FAULT_PARAMETER, "seed", 0, 0 },
    { 500, "{\"error\":{\"message\":\"logprobs is not supported with tools + stream\"}}",
      FAULT_PARAMETER, "logprobs", 0, 0 },
    { 400,
      "{\"error\":{\"message\":\"Unsupported value: 'temperature' does not support 0.2\",\"param\":"
      "\"temperature\"}}",
      FAULT_PARAMETER, "temperature", 0, 0 },
    { 400, "{\"error\":{\"message\":\"thinking.type.enabled is not supported for this model\"}}",
      FAULT_PARAMETER, "thinking.type", 0, 0 },
    /* history */
    { 400, "{\"error\":{\"message\":\"`tool_use` ids were found without `tool_result` blocks\"}}",
      FAULT_HISTORY, "", 0, 0 },
    { 400,
      "{\"error\":{\"message\":\"An assistant message with 'tool_calls' must be followed by tool "
      "messages\"}}",
      FAULT_HISTORY, "", 0, 0 },
    { 400,
      "{\"error\":{\"message\":\"The `reasoning_content` in the thinking mode must be passed "
      "back\"}}",
      FAULT_HISTORY, "", 0, 0 },
    { 400, "{\"error\":{\"message\":\"blocked\",\"code\":\"content_filter\"}}", FAULT_REFUSED, "",
      0, 0 },
    { 400, "[{\"error\":{\"message\":\"bad\",\"status\":\"INVALID_ARGUMENT\"}}]", FAULT_REQUEST, "",
      0, 0 },
    /* in a stream */
    { 200, "{\"error\":{\"message\":\"x\",\"code\":429}}", FAULT_RATE, "", 0, 0 },
    { 200, "{\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}",
      FAULT_OVERLOADED, "", 0, 0 },
    { 200, "{\"error\":{\"type\":\"invalid_request_error\",\"message\":\"bad\"}}", FAULT_REQUEST,
      "", 0, 0 },
    { 200, "{\"error\":{\"type\":\"authentication_error\",\"message\":\"bad\"}}", FAULT_AUTH, "", 0,
      0 },
    { 200, "{\"error\":\"words only\"}", FAULT_SERVER, "", 0, 0 },
};

static void faults_are_told_apart(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(faults); i++) {
        own_arena a = { 0 };
        struct fault_http h = { .status = faults[i].status, .body = str_from(faults[i].body) };
        struct fault f = fault_from_http(&a, &h);
        if (f.kind != faults[i].kind || !str_eq(f.param, str_from(faults[i].param)))
            print_error("row %zu: %s, %.*s: %.*s\n", i, fault_name(f.kind), STR_FMT(f.param),
                        STR_FMT(f.message));
        assert_int_equal(f.kind, faults[i].kind);
        assert_true(str_eq(f.param, str_from(faults[i].param)));
        assert_int_equal(f.n_prompt, faults[i].prompt);
        assert_int_equal(f.n_window, faults[i].window);
        assert_true(f.message.len > 0);
        assert_false(f.has_wait);
    }
}

static void words_of_others_are_cut_and_plain(void **state)
{
    own_arena a = { 0 };
    char *long_text = arena_new(&a, char, 4000);
    (void)state;
    for (size_t i = 0; i + 3 < 3999; i += 3)
        memcpy(long_text + i, "\xe2\x82\xac", 3);
    struct fault f =
        fault_from_http(&a, &(struct fault_http){ .status = 500, .body = str_from(long_text) });
    assert_in_range(f.message.len, FAULT_TEXT_MAX - 3, FAULT_TEXT_MAX);
    assert_true(f.message.len % 3 == 0);
    f = fault_from_http(&a, &(struct fault_http){ .status = 500, .body = S("a\x1b[31mb\0c") });
    assert_true(str_eq(f.message, S("a [31mb c")));
}

static void how_long_to_wait(void **state)
{
    static const struct {
        const char *after, *after_ms, *reset;
        bool has;
        int64_t ms;
    } rows[] = {
        { "7", NULL, NULL, true, 7000 },
        { "0.5", NULL, NULL, true, 500 },
        { "7", "20", NULL, true, 20 },
        { "Wed, 21 Oct 2015 07:28:10 GMT", NULL, NULL, true, 10000 },
        { "Wed, 21 Oct 2015 07:27:00 GMT", NULL, NULL, true, 0 },
        { NULL, NULL, "6m0s", true, 360000 },
        { NULL, NULL, "1h2m3s", true, 3723000 },
        { NULL, NULL, "120ms", true, 120 },
        { NULL, NULL, "1445412485", true, 5000 },
        { "soon", NULL, NULL, false, 0 },
        { "-5", NULL, NULL, false, 0 },
        { "1e300", NULL, NULL, false, 0 },
        { NULL, NULL, NULL, false, 0 },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        own_arena a = { 0 };
        struct fault f =
            fault_from_http(&a, &(struct fault_http){ .status = 429,
                                                      .retry_after = str_from(rows[i].after),
                                                      .retry_after_ms = str_from(rows[i].after_ms),
                                                      .reset = str_from(rows[i].reset),
                                                      .now_s = 1445412480 });
        if (f.has_wait != rows[i].has)
            print_error("row %zu\n", i);
        assert_int_equal(f.has_wait, rows[i].has);
        if (f.has_wait)
            assert_int_equal(f.wait_ms, rows[i].ms);
    }
}

/* ---- compat ---- */

static void every_known_row_can_be_set(void **state)
{
    static const struct {
        const char *url, *model, *key, *value;
        enum dialect dialect;
    } rows[] = {
        { "https://api.openai.com", "gpt-x", "limit", "max_completion_tokens", DIALECT_OPENAI },
        { "https://x.openai.azure.com", "gpt-x", "ids", "40", DIALECT_OPENAI },
        { "https://api.deepseek.com", "deepseek-chat", "back", "tool_turns", DIALECT_OPENAI },
        { "https://api.moonshot.cn", "kimi-k2", "back", "tool_turns", DIALECT_OPENAI },
        { "https://dashscope.aliyuncs.com", "qwen3", "thinking", "none", DIALECT_OPENAI },
        { "https://api.mistral.ai", "x", "ids", "9", DIALECT_OPENAI },
        { "https://api.groq.com", "x", "ids", "any", DIALECT_OPENAI },
        { "https://api.x.ai", "x", "limit", "max_tokens", DIALECT_OPENAI },
        { "https://openrouter.ai/api", "x", "reasoning", "reasoning", DIALECT_OPENAI },
        { "https://generativelanguage.googleapis.com", "x", "thinking", "effort", DIALECT_OPENAI },
        { "http://localhost:11434", "x", "limit", "max_tokens", DIALECT_OPENAI },
        { "http://10.0.0.1:8000", "Qwen/Qwen3", "thinking", "template", DIALECT_OPENAI },
        { "http://10.0.0.1:8000", "", "limit", "max_tokens", DIALECT_OPENAI },
        { "https://api.anthropic.com", "c", "back", "always", DIALECT_ANTHROPIC },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct compat c =
            compat_for(rows[i].dialect, str_from(rows[i].url), str_from(rows[i].model));
        struct compat back = compat_for(DIALECT_OPENAI, S("http://h"), S("m"));
        struct err err = { 0 };
        own_json j = compat_json(&c);
        assert_string_equal(json_string_value(json_object_get(j, rows[i].key)), rows[i].value);
        assert_int_equal(compat_read(&back, j, &err), OK);
        assert_true(compat_equal(&c, &back));
    }
}

static void the_ladder(void **state)
{
    static const struct {
        enum fault_kind kind;
        int status;
        const char *param, *message, *what, *key;
    } rows[] = {
        { FAULT_PARAMETER, 400, "max_tokens", "", "max_completion_tokens", "limit" },
        { FAULT_PARAMETER, 400, "seed", "", "without seed", "seed" },
        { FAULT_PARAMETER, 400, "temperature", "", "without temperature", "temperature" },
        { FAULT_PARAMETER, 400, "stream_options", "", "without stream_options", "stream_usage" },
        { FAULT_PARAMETER, 500, "logprobs", "", "without logprobs", "logprobs" },
        { FAULT_PARAMETER, 400, "budget_tokens", "", "adaptive", "thinking" },
        { FAULT_HISTORY, 400, "", "Can only get item pairs from a mapping.", "objects",
          "args_object" },
        { FAULT_HISTORY, 400, "", "must be passed back", "reasoning sent back", "back" },
    };
    const struct chat_sampling s = { .max_tokens = 1, .logprobs = true, .thinking = true };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct compat c = compat_for(DIALECT_OPENAI, S("http://h"), S("m"));
        struct fault f = { .kind = rows[i].kind,
                           .status = rows[i].status,
                           .param = str_from(rows[i].param),
                           .message = str_from(rows[i].message) };
        own_json was = compat_json(&c);
        const char *what = "";
        assert_true(compat_degrade(&c, &f, &s, &what));
        own_json is = compat_json(&c);
        assert_non_null(strstr(what, rows[i].what));
        assert_false(
            json_equal(json_object_get(was, rows[i].key), json_object_get(is, rows[i].key)));
    }
}

static void the_ladder_ends(void **state)
{
    const struct fault f = { .kind = FAULT_REQUEST, .status = 400 };
    struct chat_sampling s = { .max_tokens = 1, .logprobs = true, .token_ids = true };
    (void)state;
    for (int need = 0; need < 2; need++) {
        struct compat c = compat_for(DIALECT_OPENAI, S("http://h"), S("m"));
        const char *what = "", *last = "";
        int n = 0;
        s.need_tokens = need;
        for (; compat_degrade(&c, &f, &s, &what); n++)
            last = what;
        assert_string_equal(last, "without a stream");
        assert_int_equal(n, need ? 3 : 5);
        assert_int_equal(c.logprobs, need);
        assert_int_equal(c.token_ids, need);
    }
    struct compat c = compat_for(DIALECT_OPENAI, S("http://h"), S("m"));
    const char *what;
    const struct fault others[] = { { .kind = FAULT_AUTH, .status = 401 },
                                    { .kind = FAULT_SERVER, .status = 503 },
                                    { .kind = FAULT_CONTEXT, .status = 400 } };
    for (size_t i = 0; i < COUNT(others); i++)
        assert_false(compat_degrade(&c, &others[i], &s, &what));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_and_their_names),
        cmocka_unit_test(events_that_are_too_long),
        cmocka_unit_test(arguments_are_repaired),
        cmocka_unit_test(arguments_past_help),
        cmocka_unit_test(text_is_cleaned),
        cmocka_unit_test(faults_are_told_apart),
        cmocka_unit_test(words_of_others_are_cut_and_plain),
        cmocka_unit_test(how_long_to_wait),
        cmocka_unit_test(every_known_row_can_be_set),
        cmocka_unit_test(the_ladder),
        cmocka_unit_test(the_ladder_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
