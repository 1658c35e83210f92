/* What answers mean, without a server: rows, settings, what is asked next. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "llm/probe.h"

#define TEXT(z)                               \
    {                                         \
        (char *)(uintptr_t)(z), sizeof(z) - 1 \
    }

static const struct probe_row *row_find(const struct probing *p, const char *what)
{
    for (size_t i = p->n_rows; i-- > 0;)
        if (strcmp(p->rows[i].what, what) == 0)
            return &p->rows[i];
    fail_msg("no row '%s'", what);
    return NULL;
}

static void lists_of_models(void **state)
{
    static const struct {
        const char *body, *model, *found;
        bool good, other;
        int64_t window;
    } rows[] = {
        { "{\"data\":[{\"id\":\"a\",\"max_model_len\":4096}]}", "", "a (1 in the list)", true,
          false, 4096 },
        { "{\"data\":[{\"id\":\"a\",\"meta\":{\"n_ctx\":512,\"n_ctx_train\":99}}]}", "a",
          "a (1 in the list)", true, false, 512 },
        { "{\"data\":[{\"id\":\"a\",\"context_length\":7},{\"id\":\"b\"}]}", "b",
          "b (2 in the list)", true, false, 0 },
        { "{\"data\":[{\"id\":\"a\"},{\"id\":\"b\"}]}", "", "a, b", false, false, 0 },
        { "{\"data\":[{\"id\":\"a\"}]}", "c", "'c' is not among a", false, false, 0 },
        { "{\"data\":[{\"type\":\"model\",\"id\":\"a\",\"display_name\":\"A\"}]}", "", "a (1 in",
          true, true, 0 },
        { "{\"data\":[]}", "", "no list of models", false, false, 0 },
        { "<html>", "", "no list of models", false, false, 0 },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        own_arena a = { 0 };
        struct probing p;
        bool other = false;
        struct llm_outcome o = { .body = str_from(rows[i].body) };
        probing_init(&p, &a, DIALECT_OPENAI, str_from(rows[i].model));
        probe_models(&p, &o, &other);
        const struct probe_row *r = row_find(&p, "models");
        if (strstr(r->found, rows[i].found) == NULL)
            fail_msg("'%s' does not say '%s'", r->found, rows[i].found);
        assert_int_equal(r->good, rows[i].good);
        assert_int_equal(other, rows[i].other);
        assert_int_equal(p.window, rows[i].window);
    }
}

static void answers(void **state)
{
    static const struct {
        enum probe_id id;
        struct reply reply;
        struct fault fault;
        const char *what, *found, *learnt;
        bool good, usable;
    } rows[] = {
        { PROBE_ANSWER,
          { .end = REPLY_STOP, .text = TEXT(" ready\n") },
          { 0 },
          "answer",
          "\"ready\"",
          "",
          true,
          true },
        { PROBE_ANSWER,
          { .end = REPLY_LENGTH },
          { 0 },
          "answer",
          "an empty text",
          "",
          false,
          false },
        { PROBE_ANSWER,
          { .end = REPLY_STOP, .text = TEXT("so\n</think>\nready") },
          { 0 },
          "answer",
          "</think>",
          "think_open=true",
          true,
          true },
        { PROBE_ANSWER,
          { .end = REPLY_REFUSED, .text = TEXT("I cannot") },
          { 0 },
          "answer",
          "refused: \"I cannot\"",
          "",
          false,
          false },
        { PROBE_STREAM,
          { .end = REPLY_STOP, .notes = NOTE_NO_USAGE | NOTE_BODY },
          { 0 },
          "stream",
          "one body came",
          "",
          false,
          true },
        { PROBE_REASONING,
          { .end = REPLY_STOP, .reasoning = TEXT("hm"), .reasoning_key = "reasoning" },
          { 0 },
          "reasoning",
          "in 'reasoning', 2 bytes",
          "reasoning=reasoning",
          true,
          true },
        { PROBE_REASONING,
          { .end = REPLY_STOP, .usage = { .reasoning = 9 } },
          { 0 },
          "reasoning",
          "hidden: 9 tokens",
          "",
          true,
          true },
        { PROBE_CALL,
          { .end = REPLY_STOP, .text = TEXT("<tool_call>"), .notes = NOTE_MARKUP },
          { 0 },
          "call",
          "came as text",
          "",
          false,
          false },
        { PROBE_CALL,
          { .end = REPLY_STOP, .text = TEXT("ping") },
          { 0 },
          "call",
          "no call, but \"ping\"",
          "",
          false,
          false },
        { PROBE_CALL,
          { .end = REPLY_FAILED },
          { .kind = FAULT_REQUEST, .status = 400, .message = TEXT("no tool parser") },
          "call",
          "request (HTTP 400): no tool parser",
          "",
          false,
          false },
        { PROBE_PARALLEL, { .end = REPLY_STOP }, { 0 }, "parallel", "0 of two", "", false, true },
        { PROBE_TOKENS,
          { .end = REPLY_STOP },
          { 0 },
          "tokens",
          "neither",
          "token_ids=false logprobs=false",
          false,
          true },
        { PROBE_MARKER,
          { .end = REPLY_STOP, .text = TEXT("amber-falcon") },
          { 0 },
          "marker",
          "was read",
          "",
          true,
          true },
        { PROBE_MARKER,
          { .end = REPLY_STOP, .text = TEXT("amber-falcon"), .notes = NOTE_PROMPT_CUT },
          { 0 },
          "marker",
          "threw the start",
          "",
          false,
          false },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        own_arena a = { 0 };
        struct probing p;
        struct llm_outcome o = { .reply = rows[i].reply, .fault = rows[i].fault };
        probing_init(&p, &a, DIALECT_OPENAI, S("m"));
        assert_false(probe_take(&p, rows[i].id, &o));
        const struct probe_row *r = row_find(&p, rows[i].what);
        if (strstr(r->found, rows[i].found) == NULL)
            fail_msg("'%s' does not say '%s'", r->found, rows[i].found);
        assert_int_equal(r->good, rows[i].good);
        assert_int_equal(p.usable, rows[i].usable);
        assert_true(str_eq((struct str){ p.learnt.ptr, p.learnt.len }, str_from(rows[i].learnt)));
    }
}

/* A good call is kept for the next question, and outlives the reply. */
static void the_result_goes_back(void **state)
{
    own_arena a = { 0 };
    struct probing p;
    char id[] = "call_1";
    struct chat_part part = { .kind = CHAT_CALL,
                              .id = { id, 6 },
                              .name = TEXT("report"),
                              .args = TEXT("{\"word\":\"ping\"}") };
    struct reply_call call = { .id = part.id, .name = part.name, .args = part.args };
    struct llm_outcome o = {
        .reply = { .end = REPLY_STOP,
                   .calls = &call,
                   .n_calls = 1,
                   .message = { .role = CHAT_ASSISTANT, .parts = &part, .n_parts = 1 } }
    };
    struct chat chat;
    struct chat_sampling sampling;
    (void)state;
    probing_init(&p, &a, DIALECT_OPENAI, S("m"));
    assert_false(probe_wanted(&p, PROBE_RESULT, false));
    assert_false(probe_take(&p, PROBE_CALL, &o));
    assert_true(probe_wanted(&p, PROBE_RESULT, false));
    memset(id, 'x', 6);
    probe_ask(&p, PROBE_RESULT, &chat, &sampling);
    assert_int_equal(chat.n_messages, 3);
    assert_true(str_eq(chat.messages[1].parts[0].id, S("call_1")));
    assert_int_equal(chat.messages[2].parts[0].kind, CHAT_RESULT);
    assert_true(str_eq(chat.messages[2].parts[0].id, S("call_1")));
}

/* Steps of a call that failed all the same are undone by the caller: they are not told. */
static void steps_count_when_they_helped(void **state)
{
    own_arena a = { 0 };
    struct probing p;
    struct llm_outcome o = { .reply = { .end = REPLY_STOP, .text = TEXT("ready") },
                             .changes = TEXT("without seed\nwithout temperature") };
    (void)state;
    probing_init(&p, &a, DIALECT_OPENAI, S("m"));
    probe_take(&p, PROBE_ANSWER, &o);
    probe_take(&p, PROBE_STREAM, &o);
    assert_int_equal(p.n_steps, 2);
    o.fault = (struct fault){ .kind = FAULT_REQUEST, .status = 400, .message = TEXT("no") };
    o.changes = S("without a stream");
    o.n_window = 77;
    probe_take(&p, PROBE_WINDOW, &o);
    assert_int_equal(p.n_steps, 2);
    assert_int_equal(p.window, 77);
}

static void a_stream_that_fails_is_asked_whole(void **state)
{
    own_arena a = { 0 };
    struct probing p;
    struct llm_outcome o = { .fault = { .kind = FAULT_CUT } };
    (void)state;
    probing_init(&p, &a, DIALECT_OPENAI, S("m"));
    assert_false(probe_whole(&p, PROBE_CALL));
    assert_true(probe_take(&p, PROBE_CALL, &o));
    assert_int_equal(p.n_rows, 0);
    assert_true(probe_whole(&p, PROBE_CALL));
    assert_false(probe_take(&p, PROBE_CALL, &o)); /* once */
    assert_false(p.usable);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_of_models),
        cmocka_unit_test(answers),
        cmocka_unit_test(the_result_goes_back),
        cmocka_unit_test(steps_count_when_they_helped),
        cmocka_unit_test(a_stream_that_fails_is_asked_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
