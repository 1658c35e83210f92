/* Whole episodes with a scripted model: what happens, what is left, how it ends. */
#include "tests/agent/world.h"

static void nominal(void **state)
{
    struct world *w = world_new();
    (void)state;
    says(w, "text:Let me look.",
         "Write {\"file_path\":\"kernels/k.cu\",\"content\":\"// fast\\n\"}", "profile {}");
    says(w,
         "Edit {\"file_path\":\"kernels/k.cu\",\"old_string\":\"fast\",\"new_string\":\"fast "
         "fast\"}",
         "profile {}");
    says(w, "submit {}", "profile {}");
    struct agent_result r = world_run(w, 1);
    ended_as(&r, "submitted");
    own_json events = world_events(w);
    assert_int_equal(count_named(events, "turn_end"), 3);
    assert_int_equal(count_named(events, "eval"), 2);
    assert_int_equal(r.attempt[0].totals.turns, 3);
    assert_int_equal(r.attempt[0].totals.output, 150);
    assert_non_null(r.best);
    const json_t *skipped = event_named(events, "tool_end", 5);
    assert_true(json_is_true(json_object_get(skipped, "skipped")));
    struct err err = { 0 };
    struct str text;
    fine(file_read(&w->a, arena_fmt(&w->a, "%s/best/kernels/k.cu", w->config.out), 1000, &text,
                   &err));
    assert_string_equal(text.ptr, "// fast fast\n");
    agent_result_fini(&r);
    /* Once more: it has ended and stays so. */
    size_t before = json_array_size(events);
    r = world_run(w, 1);
    ended_as(&r, "submitted");
    own_json again = world_events(w);
    assert_int_equal(json_array_size(again), before);
    agent_result_fini(&r);
    world_end(w);
}

/* How each kind of answer is met, and how the episode ends. */
static void endings(void **state)
{
    static const struct {
        const char *name, *status, *end, *part;
        int n, nudges;
    } rows[] = {
        { "words twice", "submitted", "stop", "text:I am done.", 3, 1 },
        { "nothing but thoughts", "format", "stop", "think:hm", 5, 3 },
        { "empty", "format", "stop", NULL, 5, 3 },
        { "cut", "format", "length", "text:long", 5, 3 },
        { "no JSON", "format", "stop", "Read {\"file_path\":", 5, 0 },
        { "the same over and over", "loop", "stop", "Glob {\"pattern\":\"*.py\"}", 9, 1 },
        { "refused twice", "refused", "refused", "text:no", 5, 0 },
        { "paused", "endpoint", "paused", "text:wait", 3, 0 }, /* the script ends */
        { "unknown tool", "loop", "stop", "Fly {}", 9, 1 },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct world *w = world_new();
        for (int k = 0; k < rows[i].n; k++)
            ends(w, rows[i].end, rows[i].part);
        struct agent_result r = world_run(w, 1);
        own_json events = world_events(w);
        if (strcmp(r.attempt[0].status, rows[i].status) != 0 ||
            count_named(events, "message") != rows[i].nudges + 1)
            fail_msg("%s: ended as %s (%s) with %d messages", rows[i].name, r.attempt[0].status,
                     r.attempt[0].reason, count_named(events, "message"));
        agent_result_fini(&r);
        world_end(w);
    }
}

static void budgets(void **state)
{
    static const struct {
        const char *status;
        struct budget budget;
    } rows[] = { { "turns", { .turns = 5 } },
                 { "tokens", { .tokens = 5200 } },
                 { "cost", { .cost = 0.005 } } };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct world *w = world_new();
        for (int k = 0; k < 10; k++)
            says(w, arena_fmt(&w->a, "Write {\"file_path\":\"a.txt\",\"content\":\"%d\"}", k));
        w->config.budget = rows[i].budget;
        struct agent_result r = world_run(w, 1);
        ended_as(&r, rows[i].status);
        own_json events = world_events(w);
        assert_int_equal(count_named(events, "limit"), 2);
        int64_t turns = r.attempt[0].totals.turns;
        const json_t *last = event_named(events, "tool_end", (int)turns - 1);
        assert_non_null(strstr(member_text(last, "text").ptr, "[context"));
        agent_result_fini(&r);
        /* With more of it, the same episode goes on. */
        w->config.budget = (struct budget){ .turns = turns + 2 };
        r = world_run(w, 1);
        ended_as(&r, "turns");
        assert_int_equal(r.attempt[0].totals.turns, turns + 2);
        agent_result_fini(&r);
        world_end(w);
    }
}

static void gate(void **state)
{
    struct world *w = world_new();
    (void)state;
    w->config.gate = 3;
    for (int k = 1; k < 9; k++)
        says(w,
             arena_fmt(&w->a, "Write {\"file_path\":\"kernels/k.cu\",\"content\":\"%.*s\"}", 5 * k,
                       "fast fast fast fast fast fast fast fast fast "),
             "profile {}");
    struct agent_result r = world_run(w, 1);
    ended_as(&r, "target");
    assert_int_equal(r.attempt[0].totals.turns, 4);
    agent_result_fini(&r);
    world_end(w);
}

static void steer_at_turn(struct world *w, const json_t *event)
{
    struct err err = { 0 };
    if (str_eq(member_text(event, "event"), S("turn_end")) && member_int(event, "turn") == 1)
        fine(agent_steer(w->config.out, S("Use tensor cores."), &err));
}

static void steered(void **state)
{
    struct world *w = world_new();
    (void)state;
    w->on_event = steer_at_turn;
    for (int k = 0; k < 4; k++)
        says(w, arena_fmt(&w->a, "Write {\"file_path\":\"a%d\",\"content\":\"%d\"}", k, k));
    says(w, "submit {}");
    struct agent_result r = world_run(w, 1);
    ended_as(&r, "submitted");
    own_json events = world_events(w);
    const json_t *m = event_named(events, "message", 1);
    assert_true(str_eq(member_text(m, "kind"), S("steer")));
    assert_true(str_eq(member_text(json_array_get(json_object_get(m, "parts"), 0), "text"),
                       S("Use tensor cores.")));
    assert_false(path_exists(arena_fmt(&w->a, "%s/attempt-1/steer", w->config.out)));
    agent_result_fini(&r);
    world_end(w);
}

static void keys_stay_out(void **state)
{
    struct world *w = world_new();
    struct err err = { 0 };
    struct str text;
    (void)state;
    setenv("MY_TEST_API_KEY", "sk-very-secret-value", 1);
    says(w, "text:I found sk-very-secret-value.",
         "Write {\"file_path\":\"a\",\"content\":\"sk-very-secret-value\"}");
    says(w, "submit {}");
    struct agent_result r = world_run(w, 1);
    ended_as(&r, "submitted");
    fine(file_read(&w->a, arena_fmt(&w->a, "%s/attempt-1/events.jsonl", w->config.out),
                   WORLD_TEXT_MAX, &text, &err));
    assert_null(strstr(text.ptr, "sk-very"));
    assert_non_null(strstr(text.ptr, "found [key]."));
    unsetenv("MY_TEST_API_KEY");
    agent_result_fini(&r);
    world_end(w);
}

/* The state that lived is the fold of what was written. */
static void many_at_once(void **state)
{
    struct world *w = world_new();
    (void)state;
    for (int k = 0; k < 6; k++)
        says(w, arena_fmt(&w->a, "nap {\"ms\":%d}", k % 3),
             arena_fmt(&w->a,
                       "Write "
                       "{\"file_path\":\"f%d\",\"content\":\"x\"}",
                       k));
    says(w, "submit {}");
    w->config.active_max = 8;
    struct agent_result r = world_run(w, 30);
    for (int i = 0; i < 30; i++) {
        assert_string_equal(r.attempt[i].status, "submitted");
        own_json events = world_events_in(w, w->config.out, i + 1);
        assert_int_equal(count_named(events, "turn_end"), 7);
    }
    agent_result_fini(&r);
    world_end(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nominal),      cmocka_unit_test(endings), cmocka_unit_test(budgets),
        cmocka_unit_test(gate),         cmocka_unit_test(steered), cmocka_unit_test(keys_stay_out),
        cmocka_unit_test(many_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
