/* Sittings: ^C and on again, what a new tools session is told, an endpoint over the wire, many
 * attempts where one fails. */
#include <poll.h>

#include "agent/parts.h"
#include "sys/stop.h"
#include "tests/agent/world.h"

/* ---- ^C ---- */

static void interrupt_nap(struct world *w, const json_t *event)
{
    (void)w;
    if (str_eq(member_text(event, "event"), S("tool_start")) &&
        str_eq(member_text(event, "name"), S("nap")))
        raise(SIGINT);
}

static void interrupt_request(struct world *w, const json_t *event)
{
    (void)w;
    if (str_eq(member_text(event, "event"), S("request")) && member_int(event, "turn") == 1)
        raise(SIGINT);
}

/* In a process of its own: the flag of ^C is the process's. */
static void sitting_that_is_stopped(struct world *w)
{
    pid_t pid = fork();
    int status;
    if (pid == 0) {
        struct err err = { 0 };
        struct agent_result r = { 0 };
        stop_install();
        if (agent_run(&w->config, 1, &w->a, &r, &err) != OK)
            _exit(3);
        _exit(strcmp(r.attempt[0].status, "stopped") == 0 && r.stopped ? 0 : 4);
    }
    waitpid(pid, &status, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void stopped_and_on_again(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        struct world *w = world_new();
        says(w, "Write {\"file_path\":\"a\",\"content\":\"1\"}");
        says(w, "nap {\"ms\":90000}", "Write {\"file_path\":\"b\",\"content\":\"1\"}");
        says(w, "submit {}");
        script_write(w);
        w->on_event = late ? interrupt_nap : interrupt_request;
        sitting_that_is_stopped(w);
        own_json half = world_events(w);
        assert_int_equal(count_named(half, "turn_end"), late ? 2 : 1);
        const json_t *end = event_named(half, "run_end", 0);
        assert_true(str_eq(member_text(end, "status"), S("stopped")));
        if (late) { /* what ran is told of, and so is what did not */
            assert_non_null(strstr(member_text(event_named(half, "tool_end", 1), "text").ptr,
                                   "stopped before its end"));
            assert_true(json_is_true(json_object_get(event_named(half, "tool_end", 2), "skipped")));
        }
        if (!late) /* short this time */
            json_array_clear(w->script), says(w, "nap {}"), says(w, "nap {}"), says(w, "submit {}");
        w->on_event = NULL;
        struct agent_result r = world_run(w, 1);
        ended_as(&r, "submitted");
        assert_int_equal(r.attempt[0].totals.turns, 3);
        own_json events = world_events(w);
        assert_int_equal(count_named(events, "run_end"), 1);
        agent_result_fini(&r);
        world_end(w);
    }
}

/* ---- a new session knows what the old one knew ---- */

static void sessions_are_told(void **state)
{
    struct world *w = world_new();
    (void)state;
    says(w, "Write {\"file_path\":\"sub/a\",\"content\":\"one\"}", "Bash {\"command\":\"cd sub\"}",
         "Write {\"file_path\":\"b\",\"content\":\"two\"}",
         "TodoWrite {\"todos\":[{\"content\":\"tile it\",\"status\":\"pending\"}]}",
         "Bash {\"command\":\"echo changed > ../b\"}");
    w->config.budget.turns = 1;
    struct agent_result r = world_run(w, 1);
    ended_as(&r, "turns");
    agent_result_fini(&r);
    says(w, "Edit {\"file_path\":\"sub/a\",\"old_string\":\"one\",\"new_string\":\"three\"}",
         "Edit {\"file_path\":\"b\",\"old_string\":\"two\",\"new_string\":\"three\"}",
         "Bash {\"command\":\"pwd; cat a\"}");
    for (int k = 0; k < 16; k++)
        says(w, arena_fmt(&w->a, "Write {\"file_path\":\"n%d\",\"content\":\"\"}", k));
    says(w, "submit {}");
    w->config.budget.turns = 50;
    r = world_run(w, 1);
    ended_as(&r, "submitted");
    own_json events = world_events(w);
    const json_t *known = event_named(events, "tool_end", 5);
    assert_false(json_is_true(json_object_get(known, "failed")));
    /* Bash has changed it since the model saw it; that is for the old session and the new one. */
    assert_true(json_is_true(json_object_get(event_named(events, "tool_end", 6), "failed")));
    const char *pwd = member_text(event_named(events, "tool_end", 7), "text").ptr;
    if (strstr(pwd, "/sub\nthree") == NULL)
        fail_msg("pwd and cat said '%s'", pwd);
    const json_t *m = event_named(events, "message", 1);
    assert_true(str_eq(member_text(m, "kind"), S("reminder")));
    assert_non_null(
        strstr(member_text(json_array_get(json_object_get(m, "parts"), 0), "text").ptr, "tile it"));
    agent_result_fini(&r);
    world_end(w);
}

/* A command in the background ends with its process, and the model is told. */
static void background_is_lost(void **state)
{
    struct world *w = world_new();
    (void)state;
    says(w, "Bash {\"command\":\"sleep 50\",\"run_in_background\":true}");
    w->config.budget.turns = 1;
    struct agent_result r = world_run(w, 1);
    agent_result_fini(&r);
    says(w, "submit {}");
    w->config.budget.turns = 9;
    r = world_run(w, 1);
    own_json events = world_events(w);
    const json_t *m = event_named(events, "message", 1);
    assert_true(str_eq(member_text(m, "about"), S("resumed")));
    assert_int_equal(count_named(events, "message"), 2);
    agent_result_fini(&r);
    /* Nor is the folder another task's. */
    w->config.task_hash = "4567";
    r = world_run(w, 1);
    ended_as(&r, "error");
    assert_non_null(strstr(r.attempt[0].reason, "another task"));
    agent_result_fini(&r);
    world_end(w);
}

/* Ids and log-probabilities of an answer, as they lie in tokens.bin. */
static void token_ids(void **state)
{
    struct world *w = world_new();
    struct err err = { 0 };
    struct secrets none = { 0 };
    struct keep keep = { 0 };
    struct episode *e = NULL;
    struct episode_spec spec = { &w->config, 1, &none, &keep, false };
    struct model_ask ask;
    int32_t prompt[] = { 1, 2, 3 }, output[] = { 4, 5 };
    double logprob[] = { -0.5, -1.5 };
    struct chat_part part = { .kind = CHAT_TEXT, .text = S("Hi") };
    struct llm_outcome o = { .reply = { .end = REPLY_STOP,
                                        .message = { CHAT_ASSISTANT, false, &part, 1, { 0 } },
                                        .tokens = { prompt, output, 3, 2, logprob, 2 } } };
    struct str bytes;
    (void)state;
    fine(episode_open(&spec, &e, &err));
    for (int k = 0; k < 2; k++) {
        while (episode_state(e) != EPISODE_ASK)
            fine(episode_step(e, &err));
        episode_ask(e, &ask);
        assert_int_equal(ask.turn, k);
        fine(episode_answer(e, &o, &err));
    }
    episode_close(e);
    own_json events = world_events(w);
    const json_t *t = json_object_get(event_named(events, "response", 1), "tokens");
    assert_int_equal(member_int(t, "offset"), 28);
    assert_int_equal(member_int(t, "prompt"), 3);
    assert_int_equal(member_int(t, "output"), 2);
    fine(file_read(&w->a, path_join(&w->a, w->config.out, "attempt-1/tokens.bin"), 1000, &bytes,
                   &err));
    assert_int_equal(bytes.len, 56);
    int32_t ids[5];
    float probs[2];
    memcpy(ids, bytes.ptr + 28, sizeof ids);
    memcpy(probs, bytes.ptr + 48, sizeof probs);
    assert_int_equal(ids[2] * 10 + ids[4], 35);
    assert_true(probs[1] < -1.4f && probs[1] > -1.6f);
    world_end(w);
}

/* ---- one of many ---- */

static enum err_code prepare_not_3(void *ctx, struct agent_attempt *a, struct tools_spec *ret,
                                   struct err *err)
{
    if (a->number == 3)
        return err_raise(err, ERR_SYSTEM, "no room for the third");
    return world_prepare(ctx, a, ret, err);
}

static void one_fails(void **state)
{
    struct world *w = world_new();
    (void)state;
    w->hooks.prepare = prepare_not_3;
    says(w, "nap {\"ms\":2}");
    says(w, "submit {}");
    struct agent_result r = world_run(w, 5);
    for (int i = 0; i < 5; i++)
        assert_string_equal(r.attempt[i].status, i == 2 ? "error" : "submitted");
    assert_non_null(strstr(r.attempt[2].reason, "no room for the third"));
    agent_result_fini(&r);
    world_end(w);
}

/* Somebody else works in the folder: said, not waited for without end. */
static void two_at_once(void **state)
{
    struct world *w = world_new();
    struct err err = { 0 };
    struct runlog other;
    json_t *events = NULL;
    (void)state;
    says(w, "submit {}");
    fine(dir_make(path_join(&w->a, w->config.out, "attempt-1"), 0755, &err));
    fine(runlog_open(&w->a, path_join(&w->a, w->config.out, "attempt-1/events.jsonl"), &other,
                     &events, &err));
    struct agent_result r = world_run(w, 1);
    ended_as(&r, "error");
    assert_non_null(strstr(r.attempt[0].reason, "another process"));
    runlog_close(&other);
    json_decref(events);
    agent_result_fini(&r);
    world_end(w);
}

/* ---- a caller's descriptor ---- */

static int bell[2], rung, bound;

static void on_bell(void *ctx)
{
    char c;
    (void)ctx;
    rung += (int)read(bell[0], &c, 1);
}

static void on_bind(void *ctx, struct agent_attempt *a, struct tools *t)
{
    (void)ctx, (void)a;
    bound += t != NULL ? 1 : 100;
}

static void ring(struct world *w, const json_t *event)
{
    (void)w;
    if (str_eq(member_text(event, "event"), S("tool_start")))
        assert_int_equal(write(bell[1], "x", 1), 1);
}

static void bells(void **state)
{
    struct world *w = world_new();
    (void)state;
    assert_int_equal(pipe(bell), 0);
    w->hooks.has_fd = true;
    w->hooks.fd = bell[0];
    w->hooks.pump = on_bell;
    w->hooks.bind = on_bind;
    w->on_event = ring;
    says(w, "nap {\"ms\":30}");
    says(w, "nap {\"ms\":30}");
    says(w, "submit {}");
    struct agent_result r = world_run(w, 1);
    ended_as(&r, "submitted");
    assert_true(rung >= 2);
    assert_int_equal(bound, 101);
    agent_result_fini(&r);
    world_end(w);
}

/* ---- over the wire ---- */

static void endpoint_ends(struct world *w, int port, const char *scenario, const char *status)
{
    struct llm_spec spec = { .base_url = arena_fmt(&w->a, "http://127.0.0.1:%d/%s", port, scenario),
                             .model = "m",
                             .tries_max = 2,
                             .times = { .backoff_ms = 1, .backoff_max_ms = 2 } };
    w->config.out = path_join(&w->a, w->top, scenario);
    w->config.model_log = NULL;
    w->config.endpoint = &spec;
    struct agent_result r = world_run(w, 6);
    for (int i = 0; i < 6; i++)
        if (strcmp(r.attempt[i].status, status) != 0)
            fail_msg("%s: attempt %d ended as %s (%s), wanted %s", scenario, i, r.attempt[i].status,
                     r.attempt[i].reason, status);
    agent_result_fini(&r);
}

static void over_the_wire(void **state)
{
    struct world *w = world_new();
    int in[2], out[2];
    (void)state;
    assert_int_equal(pipe(in) | pipe(out), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        close(in[1]);
        execlp("python3", "python3", CA_SOURCE_DIR "/tests/llm/endpoint.py", NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    FILE *from = fdopen(out[0], "r");
    char *line = NULL;
    size_t cap = 0;
    assert_true(getline(&line, &cap, from) > 0);
    own_json hello = json_loads(line, 0, NULL);
    int port = (int)member_int(hello, "port");
    endpoint_ends(w, port, "ok", "submitted"); /* "Hello", twice */
    own_json events = world_events(w);
    const json_t *answer = event_named(events, "response", 1);
    assert_true(str_eq(member_text(json_array_get(json_object_get(answer, "parts"), 0), "text"),
                       S("Hello")));
    endpoint_ends(w, port, "auth", "endpoint");
    endpoint_ends(w, port, "filter", "refused");
    endpoint_ends(w, port, "overflow", "window");
    free(line);
    fclose(from);
    close(in[1]);
    waitpid(pid, NULL, 0);
    world_end(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stopped_and_on_again),
        cmocka_unit_test(sessions_are_told),
        cmocka_unit_test(background_is_lost),
        cmocka_unit_test(token_ids),
        cmocka_unit_test(one_fails),
        cmocka_unit_test(two_at_once),
        cmocka_unit_test(bells),
        cmocka_unit_test(over_the_wire),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
