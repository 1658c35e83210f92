/* What the model sees: masks keep what matters, needs follow from the state, trailers say where it
 * stands. */
#include "agent/context.h"
#include "tests/agent/world.h"

struct story {
    struct transcript t;
    int turn;
};

static void put(struct story *s, json_t *event)
{
    struct err err = { 0 };
    assert_non_null(event);
    fine(transcript_apply(&s->t, event, &err));
    json_decref(event);
}

static struct story story_new(void)
{
    struct story s = { 0 };
    transcript_init(&s.t);
    put(&s, json_pack("{s:s, s:s, s:[]}", "event", "run_start", "system", "be quick", "tools"));
    put(&s, json_pack("{s:s, s:i, s:s, s:o}", "event", "message", "index", 0, "kind", "task",
                      "parts", parts_text(S("make it fast"))));
    return s;
}

/* A turn of one call. `tokens`: what the server counted for its request; 0: it did not say. */
static void turn(struct story *s, const char *name, const char *args, const char *text,
                 int64_t tokens)
{
    int n = s->turn++;
    put(s, json_pack("{s:s, s:i}", "event", "request", "turn", n));
    put(s, json_pack("{s:s, s:i, s:I, s:s, s:{s:I}, s:[{s:s, s:s, s:s, s:s}]}", "event", "response",
                     "turn", n, "index", (json_int_t)s->t.n, "end", "stop", "usage", "input_total",
                     (json_int_t)tokens, "parts", "kind", "call", "id", "x", "name", name, "args",
                     args));
    put(s, json_pack("{s:s, s:i, s:s, s:s, s:s, s:b}", "event", "tool_end", "turn", n, "id", "x",
                     "name", name, "text", text, "failed", 0));
}

static void turn_ends(struct story *s)
{
    put(s, json_pack("{s:s, s:i, s:{s:i, s:i}}", "event", "turn_end", "turn", s->turn - 1, "totals",
                     "turns", s->turn, "input", 100 * s->turn));
}

static void graded(struct story *s, const char *candidate, double us, bool best)
{
    put(s, json_pack("{s:s, s:i, s:s, s:s, s:b, s:{s:s, s:{s:{s:f}}}}", "event", "eval", "turn",
                     s->turn - 1, "step", "profile", "candidate", candidate, "best", best,
                     "verdict", "status", "pass", "time_us", "candidate", "median", us));
}

static void idle_turns(struct story *s, int n)
{
    for (int i = 0; i < n; i++) {
        turn(s, "Glob", "{}", "nothing", 0);
        turn_ends(s);
    }
}

static const char *lines(struct arena *a, const char *first, const char *last)
{
    return arena_fmt(a, "%s\n%0500d\n%0500d\n%s", first, 1, 2, last);
}

/* The text or the arguments of the k-th turn's call as the model sees them. */
static struct str result_at(const struct story *s, int k)
{
    return s->t.said[2 + 2 * k].parts[0].text;
}

static struct str args_at(const struct story *s, int k)
{
    return s->t.said[1 + 2 * k].parts[0].args;
}

static void holds(struct str text, const char *what)
{
    own_arena tmp = { 0 };
    if (strstr(str_z(&tmp, text), what) == NULL)
        fail_msg("'%.*s' does not hold '%s'", STR_FMT(text), what);
}

static void masks(void **state)
{
    own_arena a = { 0 };
    struct story s = story_new();
    const char *body = arena_fmt(&a, "{\"file_path\":\"k.cu\",\"content\":\"%0600d\"}", 3);
    (void)state;
    turn(&s, "Bash", "{\"command\":\"nvcc k.cu\"}", /* 0 */
         lines(&a, "k.cu(3): error: expected a ';'",
               "whole in /tool-output/o-1.txt\n[exit code 2; 1.0 s]"),
         0);
    turn_ends(&s);
    turn(&s, "Write", body, "written", 0); /* 1: void, 4 writes it anew */
    turn_ends(&s);
    turn(&s, "Read", "{\"file_path\":\"k.cu\"}", lines(&a, "old", "look"), 0); /* 2: 5 reads it */
    turn_ends(&s);
    turn(&s, "profile", "{}", lines(&a, "first", "pass"), 0); /* 3: of a version that was best */
    graded(&s, "aa", 10, true);
    turn_ends(&s);
    turn(&s, "Write", body, "written", 0); /* 4 */
    put(&s, json_pack("{s:s, s:i, s:s, s:[{s:s, s:s}]}", "event", "fs", "turn", 4, "tree", "t",
                      "files", "path", "k.cu", "hash", "h"));
    turn_ends(&s);
    turn(&s, "Read", "{\"file_path\":\"/workspace/k.cu\"}", lines(&a, "new", "look"), 0); /* 5 */
    turn_ends(&s);
    turn(&s, "profile", "{}", lines(&a, "second", "slower"), 0); /* 6: of none */
    graded(&s, "bb", 11, false);
    turn_ends(&s);
    turn(&s, "Read", "{\"file_path\":\"gone.cu\"}", lines(&a, "of a file", "that is no more"), 0);
    turn_ends(&s);
    idle_turns(&s, 9);
    turn(&s, "Bash", "{}", lines(&a, "recent", "[exit code 0; 0.1 s]"), 0);
    turn_ends(&s);

    int64_t before = transcript_tokens(&s.t);
    json_t *mask = context_mask(&s.t);
    assert_non_null(mask);
    assert_int_equal(member_int(mask, "before"), before);
    int64_t after = member_int(mask, "after");
    json_object_set_new(mask, "event", json_string("context"));
    put(&s, mask);
    assert_true(transcript_tokens(&s.t) - after < 3 && after - transcript_tokens(&s.t) < 3);

    holds(result_at(&s, 0), "[elided: Bash {\"command\":\"nvcc k.cu\"}, 5 lines, \"k.cu(3): error");
    holds(result_at(&s, 0), "exit code 2");
    holds(result_at(&s, 0), "full text at /tool-output/o-1.txt]");
    holds(args_at(&s, 1), "\"content\":\"[elided: 1 lines, SHA-256 ");
    own_json args = NULL;
    struct err err = { 0 };
    fine(json_parse(args_at(&s, 1), 10000, &args, &err));
    holds(result_at(&s, 2), "[elided: Read");
    holds(result_at(&s, 3), "first\n0000");
    holds(args_at(&s, 4), "00000003");
    holds(result_at(&s, 5), "new\n0000");
    holds(result_at(&s, 6), "[elided: profile");
    holds(result_at(&s, 7), "[elided: Read");
    holds(result_at(&s, 17), "recent\n0000");
    assert_null(context_mask(&s.t)); /* once is enough */
    transcript_fini(&s.t);
}

static void needs(void **state)
{
    struct budget b = { .window = 100000 };
    struct story s = story_new();
    (void)state;
    idle_turns(&s, 12);
    assert_int_equal(context_need(&s.t, &b), CONTEXT_FITS);
    turn(&s, "Glob", "{}", "x", 72000); /* the server's word counts */
    turn_ends(&s);
    assert_int_equal(context_need(&s.t, &b), CONTEXT_MASK);
    json_t *e = json_pack("{s:s, s:i, s:s, s:i, s:i}", "event", "context", "turn", s.turn, "kind",
                          "mask", "before", 72000, "after", 71000);
    put(&s, json_incref(e));
    assert_int_equal(context_need(&s.t, &b), CONTEXT_SUMMARY);
    /* A reset that leaves it full is the end. */
    json_object_set_new(e, "kind", json_string("reset"));
    put(&s, json_incref(e));
    assert_int_equal(context_need(&s.t, &b), CONTEXT_FITS);
    s.t.anchor_tokens = 95000;
    assert_int_equal(context_need(&s.t, &b), CONTEXT_HOPELESS);
    /* Two clean-ups in a row that freed nothing, and it is full again. */
    turn(&s, "Glob", "{}", "x", 75000);
    turn_ends(&s);
    assert_int_equal(context_need(&s.t, &b), CONTEXT_HOPELESS);
    json_object_set_new(e, "after", json_integer(30000));
    json_object_set_new(e, "turn", json_integer(s.turn - 1));
    put(&s, e);
    assert_int_equal(context_need(&s.t, &b), CONTEXT_MASK);
    transcript_fini(&s.t);
}

static void trailers(void **state)
{
    own_arena a = { 0 };
    struct story s = story_new();
    struct totals now = { .turns = 12, .seconds = 1200 };
    struct budget b = { .window = 100000, .turns = 200, .seconds = 3600 };
    (void)state;
    idle_turns(&s, 3);
    assert_int_equal(context_trailer(&a, &s.t, &b, &now, 0).len, 0);
    holds(context_trailer(&a, &s.t, &b, &now, 300000), ", turn 12/200, 40 min left]");
    now.turns = 160;
    holds(context_trailer(&a, &s.t, &b, &now, 0), "[context 0%, turn 160/200");
    transcript_fini(&s.t);
}

static void tables(void **state)
{
    own_arena a = { 0 };
    struct story s = story_new();
    (void)state;
    holds(context_table(&a, &s.t), "nothing was graded yet");
    turn(&s, "profile", "{}", "x", 0);
    graded(&s, "0123456789abcdef", 12.5, true);
    turn_ends(&s);
    holds(context_table(&a, &s.t), "- turn 0, profile 01234567: pass | 12.5 us | best so far");
    transcript_fini(&s.t);
}

/* ---- whole episodes ---- */

static void long_script(struct world *w, int turns)
{
    for (int k = 0; k < turns; k++)
        says(w, "text:## Goal: be fast",
             arena_fmt(&w->a, "Write {\"file_path\":\"n%d.md\",\"content\":\"%0900d\"}", k, k));
    says(w, "submit {}");
}

/* All that is written is distinct, so that masks find nothing: summaries have to do. */
static void summed_up(void **state)
{
    struct world *w = world_new();
    (void)state;
    long_script(w, 40);
    w->config.budget = (struct budget){ .window = 12000 };
    struct agent_result r = world_run(w, 1);
    ended_as(&r, "submitted");
    own_json events = world_events(w);
    const json_t *first = event_named(events, "context", 0);
    assert_non_null(first);
    assert_true(str_eq(member_text(first, "kind"), S("summary")));
    holds(member_text(first, "summary"), "be fast");
    holds(member_text(first, "summary"), "n0.md");
    assert_true(json_array_size(json_object_get(first, "dropped")) > 4);
    assert_true(member_int(first, "after") < member_int(first, "before"));
    size_t i;
    json_t *e;
    json_array_foreach(events, i, e)
    {
        if (str_eq(member_text(e, "event"), S("request")))
            assert_true(member_int(e, "tokens") < 12000);
    }
    agent_result_fini(&r);
    world_end(w);
}

static void training_rewrites_nothing(void **state)
{
    struct world *w = world_new();
    (void)state;
    long_script(w, 40);
    w->config.budget = (struct budget){ .window = 12000 };
    w->config.training = true;
    struct agent_result r = world_run(w, 1);
    ended_as(&r, "window");
    own_json events = world_events(w);
    assert_int_equal(count_named(events, "context"), 0);
    agent_result_fini(&r);
    world_end(w);
}

/* The server says that the window is full, once; or always. */
static void overflows(void **state)
{
    (void)state;
    for (int always = 0; always < 2; always++) {
        struct world *w = world_new();
        for (int k = 0; k < 14; k++)
            says(w, arena_fmt(&w->a, "Write {\"file_path\":\"n%d\",\"content\":\"%0900d\"}", k, k));
        ends(w, "context", NULL);
        for (int k = 0; k < 3; k++)
            ends(w, always ? "context" : "stop", always ? NULL : "text:Done.");
        struct agent_result r = world_run(w, 1);
        ended_as(&r, always ? "window" : "submitted");
        own_json events = world_events(w);
        assert_int_equal(count_named(events, "context"), always ? 2 : 1);
        agent_result_fini(&r);
        world_end(w);
    }
}

/* A refusal is met with a fresh start, once. */
static void refusal(void **state)
{
    struct world *w = world_new();
    (void)state;
    says(w, "Glob {\"pattern\":\"*\"}");
    ends(w, "refused", "text:I can't help with that.");
    says(w, "Glob {\"pattern\":\"*\"}");
    says(w, "submit {}");
    struct agent_result r = world_run(w, 1);
    ended_as(&r, "submitted");
    own_json events = world_events(w);
    const json_t *reset = event_named(events, "context", 0);
    assert_true(str_eq(member_text(reset, "kind"), S("reset")));
    assert_int_equal(member_int(event_named(events, "response", 1), "index"), -1);
    assert_int_equal(member_int(event_named(events, "request", 2), "messages"), 2);
    agent_result_fini(&r);
    world_end(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masks),     cmocka_unit_test(needs),
        cmocka_unit_test(trailers),  cmocka_unit_test(tables),
        cmocka_unit_test(summed_up), cmocka_unit_test(training_rewrites_nothing),
        cmocka_unit_test(overflows), cmocka_unit_test(refusal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
