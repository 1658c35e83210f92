/* What comes out: messages, samples, ATIF, Markdown, terminal, page; of whole logs, of every prefix
 * of one, and of one whose texts attack whoever shows them. */
#include "tests/agent/fixture.h"

#include <math.h>

static struct str messages(struct arena *a, const struct trace *t, enum dialect d,
                           enum trace_view view)
{
    struct memory m = { 0 };
    struct err err = { 0 };
    if (export_messages(t, d, view, memory_open(&m)->f, &err) != OK)
        fail_msg("%s", err.text);
    return memory_take(a, &m);
}

static void openai_messages(void **state)
{
    (void)state;
    own_arena a = { 0 };
    own_trace t = fixture(&a, "episode");
    struct str text = messages(&a, &t, DIALECT_OPENAI, TRACE_SEEN);
    own_json seen = json_of(text);
    own_json real = json_of(messages(&a, &t, DIALECT_OPENAI, TRACE_REAL));
    const json_t *list = json_object_get(seen, "messages"), *m;
    assert_int_equal(json_array_size(list), 44);
    assert_true(memchr(text.ptr, '\n', text.len) == text.ptr + text.len - 1);
    assert_true(str_eq(trace_text(json_array_get(list, 0), "role"), S("system")));
    m = json_array_get(list, 2);
    says(trace_text(m, "reasoning_content"), "First I look");
    says(trace_text(m, "content"), "Let me look.");
    assert_int_equal(json_array_size(json_object_get(m, "tool_calls")), 2);
    assert_true(str_eq(trace_text(json_array_get(list, 3), "role"), S("tool")));
    says(trace_text(json_array_get(list, 4), "content"), "[model.py, 14 lines");
    says(trace_text(json_array_get(json_object_get(real, "messages"), 4), "content"),
         "import torch");
    assert_int_equal(json_array_size(json_object_get(seen, "tools")), 9);
    assert_int_equal(trace_int(json_object_get(seen, "reward"), "milestone", 0), 3);
    assert_true(json_is_true(json_object_get(seen, "passed")));
}

static void anthropic_messages(void **state)
{
    (void)state;
    own_arena a = { 0 };
    own_trace t = fixture(&a, "episode");
    own_json j = json_of(messages(&a, &t, DIALECT_ANTHROPIC, TRACE_SEEN));
    const json_t *list = json_object_get(j, "messages");
    assert_int_equal(json_array_size(list), t.n_messages);
    assert_true(json_is_array(json_object_get(j, "system")));
    const json_t *results = json_object_get(json_array_get(list, 2), "content");
    assert_int_equal(json_array_size(results), 2);
    assert_true(str_eq(trace_text(json_array_get(results, 0), "type"), S("tool_result")));
    assert_null(json_object_get(json_array_get(results, 1), "cache_control"));
}

/* ---- samples ---- */

static void samples(void **state)
{
    (void)state;
    static const struct {
        const char *begins;
        int first, last;
    } wanted[] = { { "start", 1, 5 }, { "prompt", 6, 8 }, { "context", 10, 16 } };
    own_arena a = { 0 };
    own_trace t = fixture(&a, "episode");
    struct str tokens = fixture_file(&a, "episode/tokens.bin"), line;
    struct memory m = { 0 };
    struct err err = { 0 };
    size_t n = 0, all = 0;
    assert_int_equal(export_samples(&t, tokens, memory_open(&m)->f, &n, &err), OK);
    struct str text = memory_take(&a, &m);
    assert_int_equal(n, COUNT(wanted));
    for (size_t i = 0; str_cut(&text, '\n', &line); i++) {
        own_json j = json_of(line);
        const json_t *mask = json_object_get(j, "mask"), *turns = json_object_get(j, "turns");
        const json_t *ids = json_object_get(j, "response_ids"),
                     *probs = json_object_get(j, "logprobs");
        assert_true(str_eq(trace_text(j, "begins"), str_from(wanted[i].begins)));
        assert_int_equal(json_integer_value(json_array_get(turns, 0)), wanted[i].first);
        assert_int_equal(json_integer_value(json_array_get(turns, 1)), wanted[i].last);
        assert_true(json_is_true(json_object_get(j, "valid")));
        assert_true(json_is_false(json_object_get(j, "truncated")));
        assert_int_equal(json_array_size(ids), json_array_size(mask));
        assert_int_equal(json_array_size(ids), json_array_size(probs));
        assert_int_equal(json_integer_value(json_array_get(mask, 0)), 1);
        assert_int_equal(json_integer_value(json_array_get(mask, json_array_size(mask) - 1)), 1);
        for (size_t k = 0; k < json_array_size(mask); k++) {
            bool model = json_integer_value(json_array_get(mask, k)) == 1;
            double p = json_number_value(json_array_get(probs, k));
            /* as make.py lays them */
            double wants = (double)(json_integer_value(json_array_get(ids, k)) % 97) / 128;
            assert_true(fabs(p + (model ? wants : 0)) < 1e-6);
            all += model;
        }
    }
    /* every sampled token of every answer that counts is in exactly one sample */
    for (size_t i = 0; i < t.n_events; i++)
        all -= (size_t)trace_int(json_object_get(t.event[i], "tokens"), "output", 0);
    assert_int_equal(all, 0);
}

#define RUN "{\"v\":1,\"event\":\"run_start\",\"schema\":\"cuda-agent/episode/1\",\"seq\":0}\n"
#define ANSWER(turn, at, p, o, end)                                                         \
    "{\"v\":1,\"event\":\"response\",\"turn\":" #turn ",\"index\":" #turn ",\"end\":\"" end \
    "\",\"tokens\":{\"offset\":" #at ",\"prompt\":" #p ",\"output\":" #o "}}\n"
#define CUT "{\"v\":1,\"event\":\"context\",\"turn\":1}\n"
#define END(s) "{\"v\":1,\"event\":\"run_end\",\"status\":\"" s "\"}\n"

/* Tokens: 1 2 | 3, then 1 2 3 4 | 5; at 64: 1 2 9 4 | 5 with a log-probability that is none. */
static const uint32_t token_file[] = { 1, 2, 3, 0x3f000000, 1, 2, 3, 4, 5, 0x3f000000, 0,
                                       0, 0, 0, 0,          0, 1, 2, 9, 4, 5,          0x7fc00000 };

static const struct {
    const char *log, *wanted; /* parts of the lines, cut by '|'; of errors where n < 0 */
    int n;
} sampled[] = {
    { RUN ANSWER(1, 0, 2, 1, "stop") ANSWER(2, 16, 4, 1, "stop") END("submitted"),
      "\"prompt_ids\":[1,2],\"response_ids\":[3,4,5],\"mask\":[1,0,1],\"logprobs\":[0.5,0.0,0.5]|"
      "\"turns\":[1,2]|\"valid\":true|\"truncated\":false|\"milestone\":-1",
      1 },
    { RUN ANSWER(1, 0, 2, 1, "stop") CUT ANSWER(2, 16, 4, 1, "length") END("turns"),
      "\"begins\":\"context\"|\"prompt_ids\":[1,2,3,4]|\"finish\":\"length\"|\"truncated\":true|"
      "\"valid\":true",
      2 },
    { RUN ANSWER(1, 0, 2, 1, "stop") ANSWER(2, 64, 4, 1, "stop") END("endpoint"),
      "\"begins\":\"prompt\"|\"prompt_ids\":[1,2,9,4],\"response_ids\":[5],\"mask\":[1],"
      "\"logprobs\":[null]|\"valid\":false",
      2 },
    { RUN ANSWER(1, 0, 2, 1, "cut") END("submitted"), "\"valid\":false", 1 },
    { RUN ANSWER(1, 0, 2, 1, "stop"), "\"valid\":false|\"truncated\":true|\"unfinished\"", 1 },
    { RUN END("submitted"), "", 0 },
    { RUN ANSWER(1, 80, 4, 1, "stop"), "its tokens end at byte 104, the file at 88", -1 },
    { RUN ANSWER(1, 9007199254740000, 1, 1, "stop"), "its tokens end at byte", -1 },
    { RUN ANSWER(1, -4, 1, 1, "stop"), "tokens are not {offset, prompt, output}", -1 },
    { RUN ANSWER(1, 0, 2, 1, "stop") ANSWER(2, 0, "x", 1, "stop"),
      "tokens are not {offset, prompt, output}", -1 },
};

static void sample_rows(void **state)
{
    (void)state;
    struct str tokens = { (const char *)token_file, sizeof token_file };
    for (size_t i = 0; i < COUNT(sampled); i++) {
        own_arena a = { 0 };
        own_trace t = { 0 };
        struct memory m = { 0 };
        struct err err = { 0 };
        size_t n = 0;
        struct str rest = str_from(sampled[i].wanted), part;
        assert_int_equal(trace_parse(&a, str_from(sampled[i].log), &t, &err), OK);
        enum err_code code = export_samples(&t, tokens, memory_open(&m)->f, &n, &err);
        struct str text = memory_take(&a, &m);
        if ((sampled[i].n < 0) != (code == ERR_FORMAT) || (code == OK && (int)n != sampled[i].n))
            fail_msg("row %zu: %zu samples: %s", i, n, err.text);
        while (str_cut(&rest, '|', &part))
            says(code == OK ? text : str_from(err.text), str_z(&a, part));
    }
}

/* ---- ATIF ---- */

static void atif(void **state)
{
    (void)state;
    own_arena a = { 0 };
    own_trace t = fixture(&a, "episode");
    struct memory m = { 0 };
    struct err err = { 0 };
    assert_int_equal(
        export_atif(&t, fixture_file(&a, "episode/tokens.bin"), memory_open(&m)->f, &err), OK);
    own_json j = json_of(memory_take(&a, &m));
    const json_t *steps = json_object_get(j, "steps"), *step;
    size_t i, agents = 0;
    assert_true(str_eq(trace_text(j, "schema_version"), S("ATIF-v1.4")));
    for (i = 0; i < json_array_size(steps); i++) {
        step = json_array_get(steps, i);
        const json_t *calls = json_object_get(step, "tool_calls");
        const json_t *results = json_object_get(json_object_get(step, "observation"), "results");
        assert_int_equal(trace_int(step, "step_id", 0), i + 1);
        assert_true(json_is_string(json_object_get(step, "message")));
        agents += str_eq(trace_text(step, "source"), S("agent"));
        for (size_t k = 0; k < json_array_size(results); k++) {
            const json_t *r = json_array_get(results, k), *c = json_array_get(calls, k);
            assert_true(str_eq(trace_text(r, "source_call_id"), trace_text(c, "tool_call_id")));
            assert_true(json_is_object(json_object_get(c, "arguments")));
        }
    }
    assert_int_equal(agents, 16);
    assert_int_equal(trace_int(json_object_get(j, "final_metrics"), "total_prompt_tokens", 0),
                     trace_int(trace_totals(&t), "input", -1));
    step = json_object_get(json_array_get(steps, 2), "metrics");
    assert_int_equal(json_array_size(json_object_get(step, "completion_token_ids")),
                     json_array_size(json_object_get(step, "logprobs")));
}

/* ---- shown texts ---- */

static const struct {
    const char *text, *plain, *html;
} shown[] = {
    { "a\tb\nc", "a\tb\nc", "a\tb\nc" },
    { "<a href='x'>&\"", "<a href='x'>&\"", "&lt;a href=&#39;x&#39;&gt;&amp;&quot;" },
    { "\x1b[31m\r\x7f", "\u241b[31m\u240d\u2421", "\u241b[31m\u240d\u2421" },
    { "\xff\xc3(\xed\xa0\x80", "\ufffd\ufffd(\ufffd\ufffd\ufffd",
      "\ufffd\ufffd(\ufffd\ufffd\ufffd" },
    { "\u202e\u2066\u200f", "<U+202E><U+2066><U+200F>",
      "&lt;U+202E&gt;&lt;U+2066&gt;&lt;U+200F&gt;" },
    { "\xc2\x85\u2028\ufeff", "<U+0085><U+2028><U+FEFF>",
      "&lt;U+0085&gt;&lt;U+2028&gt;&lt;U+FEFF&gt;" },
    { "\U000e0041", "<U+E0041>", "&lt;U+E0041&gt;" },
    { "\u00e4\u20ac\U0001f600", "\u00e4\u20ac\U0001f600", "\u00e4\u20ac\U0001f600" },
};

static void shown_texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(shown); i++) {
        own_arena a = { 0 };
        struct buf plain = { .arena = &a, .max = 4096 }, html = { .arena = &a, .max = 4096 };
        export_plain(&plain, str_from(shown[i].text));
        export_html(&html, str_from(shown[i].text));
        assert_string_equal(plain.ptr, shown[i].plain);
        assert_string_equal(html.ptr, shown[i].html);
    }
    own_arena a = { 0 };
    struct buf line = { .arena = &a, .max = 4096 };
    export_line(&line, S("  one\ntwo \u20ac\u20ac"), 11);
    assert_string_equal(line.ptr, "one two \u20ac...");
}

/* ---- everything of one log ---- */

struct everything {
    size_t page;
};

static struct everything every_export(const struct trace *t, struct str tokens)
{
    own_arena a = { 0 };
    struct memory m = { 0 };
    struct err err = { 0 }, ignored = { 0 };
    struct export_terminal term = { .colour = true, .width = 100 };
    size_t n;
    struct everything e = { 0 };
    export_view(t, &term, memory_open(&m)->f);
    memory_take(&a, &m);
    for (size_t i = 0; i < t->n_turns; i++)
        if (t->turn[i].numbered) {
            assert_int_equal(export_turn(t, t->turn[i].turn, &term, memory_open(&m)->f, &err), OK);
            memory_take(&a, &m);
        }
    for (int d = DIALECT_OPENAI; d <= DIALECT_ANTHROPIC; d++) {
        own_json seen = json_of(messages(&a, t, (enum dialect)d, TRACE_SEEN));
        own_json real = json_of(messages(&a, t, (enum dialect)d, TRACE_REAL));
    }
    if (export_samples(t, tokens, memory_open(&m)->f, &n, &ignored) != OK)
        ignored = (struct err){ 0 };
    memory_take(&a, &m);
    if (export_atif(t, tokens, memory_open(&m)->f, &ignored) == OK) {
        own_json j = json_of(memory_take(&a, &m));
    } else {
        memory_take(&a, &m);
    }
    export_markdown(t, memory_open(&m)->f);
    memory_take(&a, &m);
    page_write(t, memory_open(&m)->f);
    struct str page = memory_take(&a, &m);
    e.page = page.len;
    assert_true(str_ends(page, S("</body></html>\n")));
    own_json summary = trace_summary(t);
    assert_true(json_is_object(summary));
    return e;
}

/* A log cut at any byte is a log. All exports at every line's end and at many bytes between. */
static void every_prefix(void **state)
{
    (void)state;
    own_arena a = { 0 };
    struct str log = fixture_file(&a, "episode/events.jsonl");
    struct str tokens = fixture_file(&a, "episode/tokens.bin");
    for (size_t n = 0; n <= log.len; n++) {
        bool edge = n == log.len || (n > 0 && log.ptr[n - 1] == '\n');
        if (!edge && n % 1499 != 0)
            continue;
        own_arena tmp = { 0 };
        own_trace t = { 0 };
        struct err err = { 0 };
        if (trace_parse(&tmp, (struct str){ log.ptr, n }, &t, &err) != OK)
            fail_msg("cut at %zu: %s", n, err.text);
        assert_int_equal(t.torn, n > 0 && log.ptr[n - 1] != '\n');
        t.folder = FIXTURES "episode";
        every_export(&t, tokens);
    }
}

/* Nothing of others reaches a terminal, Markdown or a page as a control character. */
static void hostile(void **state)
{
    (void)state;
    own_arena a = { 0 };
    own_trace t = fixture(&a, "hostile");
    struct export_terminal term = { 0 };
    struct err err = { 0 };
    struct memory m[4] = { 0 };
    export_view(&t, &term, memory_open(&m[0])->f);
    assert_int_equal(export_turn(&t, 1, &term, memory_open(&m[1])->f, &err), OK);
    export_markdown(&t, memory_open(&m[2])->f);
    page_write(&t, memory_open(&m[3])->f);
    for (size_t i = 0; i < COUNT(m); i++) {
        struct str s = memory_take(&a, &m[i]);
        struct buf b = { .arena = &a, .max = SIZE_MAX / 4 };
        export_plain(&b, s);
        assert_true(str_eq(s, (struct str){ b.ptr, b.len })); /* nothing was left to replace */
        says(s, "U+202E");
    }
    every_export(&t, fixture_file(&a, "hostile/tokens.bin"));
}

/* 200 turns of long texts: one page below 2 MB, and each cut says so. */
static void long_page(void **state)
{
    (void)state;
    own_arena a = { 0 };
    own_json events = json_array();
    own_trace t = { 0 };
    struct err err = { 0 };
    struct buf text = { .arena = &a, .max = 1 << 20 };
    for (int i = 0; i < 4000; i++)
        buf_addf(&text, "%d <b>\"&'\x1b[0m\n", i);
    json_t *start = json_pack("{s:s, s:s}", "event", "run_start", "schema", TRACE_SCHEMA);
    json_array_append_new(events, start);
    for (int i = 1; i <= 200; i++) {
        json_array_append_new(events, json_pack("{s:s, s:i, s:i, s:[{s:s, s:s}, {s:s, s:s, s:s}]}",
                                                "event", "response", "turn", i, "index", 2 * i,
                                                "parts", "kind", "thinking", "text", text.ptr,
                                                "kind", "call", "id", "x", "args", text.ptr));
        json_array_append_new(events,
                              json_pack("{s:s, s:i, s:s, s:s, s:s}", "event", "tool_end", "turn", i,
                                        "id", "x", "name", "Bash", "text", text.ptr));
    }
    assert_int_equal(trace_read(&a, events, &t, &err), OK);
    struct memory m = { 0 };
    page_write(&t, memory_open(&m)->f);
    struct str page = memory_take(&a, &m);
    assert_in_range(page.len, 1 << 19, 2000000);
    says(page, "the whole is in events.jsonl");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(openai_messages),
        cmocka_unit_test(anthropic_messages),
        cmocka_unit_test(samples),
        cmocka_unit_test(sample_rows),
        cmocka_unit_test(atif),
        cmocka_unit_test(shown_texts),
        cmocka_unit_test(every_prefix),
        cmocka_unit_test(hostile),
        cmocka_unit_test(long_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
