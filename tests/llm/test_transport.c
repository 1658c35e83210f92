/* Calls against tests/llm/endpoint.py: what is tried again, how often, what is never done. No
 * timing is asserted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/json.h"
#include "llm/llm.h"
#include "sys/file.h"

#define KEY "sk-test-1234"

struct stage {
    struct arena a;
    pid_t pid;
    FILE *to, *from;
    int64_t port, trap, tls;
    const char *ca;
    struct llm *llm;
};

static json_t *line_read(struct stage *s)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t n = getline(&line, &cap, s->from);
    json_t *j = n > 0 ? json_loadb(line, (size_t)n, 0, NULL) : NULL;
    free(line);
    return j;
}

static int stage_open(void **state)
{
    static struct stage s;
    int in[2], out[2];
    struct err err = { 0 };
    s = (struct stage){ 0 };
    if (pipe(in) != 0 || pipe(out) != 0 || (s.pid = fork()) < 0)
        return -1;
    if (s.pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        close(in[1]);
        close(out[0]);
        execlp("python3", "python3", CA_SOURCE_DIR "/tests/llm/endpoint.py", NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    s.to = fdopen(in[1], "w");
    s.from = fdopen(out[0], "r");
    json_t *hello = line_read(&s);
    if (hello == NULL)
        return -1;
    s.port = json_integer_value(json_object_get(hello, "port"));
    s.trap = json_integer_value(json_object_get(hello, "trap"));
    s.tls = json_integer_value(json_object_get(hello, "tls"));
    s.ca = str_z(&s.a, str_from(json_string_value(json_object_get(hello, "ca"))));
    json_decref(hello);
    setenv("LLM_TEST_KEY", KEY, 1);
    *state = &s;
    return llm_open(&s.llm, &err) == OK ? 0 : -1;
}

static int stage_close(void **state)
{
    struct stage *s = *state;
    int status = -1;
    llm_close(s->llm);
    fclose(s->to);
    fclose(s->from);
    waitpid(s->pid, &status, 0);
    arena_fini(&s->a);
    return status == 0 ? 0 : -1;
}

/* ---- one call ---- */

static const struct chat_part hello_part = { .kind = CHAT_TEXT, .text = { "Hello", 5 } };
static const struct chat_message hello_message = { .parts = &hello_part, .n_parts = 1 };
static const struct chat hello = { .messages = &hello_message, .n_messages = 1 };
static const struct chat_sampling sampling = { .max_tokens = 4000, .logprobs = true };

/* Short where nothing is awaited, long where something must come first on a slow machine. */
static struct llm_spec spec_of(struct stage *s, const char *scenario)
{
    return (struct llm_spec){
        .base_url = arena_fmt(&s->a, "http://127.0.0.1:%d/%s", (int)s->port, scenario),
        .model = "m",
        .key_env = "LLM_TEST_KEY",
        .tries_max = 4,
        .times = { .backoff_ms = 1, .backoff_max_ms = 2, .error_body_ms = 300, .wait_max_ms = 5 },
    };
}

static struct llm_call *started(struct stage *s, const struct llm_spec *spec)
{
    struct err err = { 0 };
    struct llm_endpoint *e = NULL;
    struct llm_call *c = NULL;
    assert_string_equal(llm_endpoint_add(s->llm, spec, &e, &err) == OK ? "" : err.text, "");
    struct llm_ask ask = { .endpoint = e, .chat = &hello, .sampling = &sampling, .tag = 42 };
    assert_int_equal(llm_start(s->llm, &ask, &c, &err), OK);
    return c;
}

static const struct llm_outcome *ended(struct stage *s, struct llm_call *c)
{
    struct err err = { 0 };
    struct llm_call *e = NULL;
    while (e == NULL)
        assert_string_equal(llm_step(s->llm, 1000, &e, &err) == OK ? "" : err.text, "");
    assert_ptr_equal(e, c);
    assert_int_equal(llm_call_tag(c), 42);
    return llm_call_outcome(c);
}

static json_t *seen(struct stage *s)
{
    fputs("hits\n", s->to);
    fflush(s->to);
    json_t *j = line_read(s);
    assert_non_null(j);
    return j;
}

static int hits(struct stage *s, const char *scenario)
{
    own_json j = seen(s);
    return (int)json_integer_value(json_object_get(json_object_get(j, "hits"), scenario));
}

static bool last_body_has(struct stage *s, const char *scenario, const char *key)
{
    own_json j = seen(s);
    const json_t *list = json_object_get(json_object_get(j, "bodies"), scenario);
    return json_object_get(json_array_get(list, json_array_size(list) - 1), key) != NULL;
}

/* ---- one row a scenario ---- */

static const struct row {
    const char *scenario;
    enum fault_kind fault;
    enum reply_end end;
    int tries;
    const char *text;    /* of the reply */
    const char *message; /* part of the fault's words */
    const char *changes; /* part of them; NULL: none */
    int64_t first_byte_ms, idle_ms;
} rows[] = {
    { "ok", FAULT_NONE, REPLY_STOP, 1, "Hello", "", NULL, 0, 0 },
    { "bytes", FAULT_NONE, REPLY_STOP, 1, "Hello", "", NULL, 0, 0 },
    { "body", FAULT_NONE, REPLY_STOP, 1, "Hello", "", NULL, 0, 0 },
    { "rate", FAULT_NONE, REPLY_STOP, 4, "Hello", "", NULL, 0, 0 },
    { "rate-far", FAULT_NONE, REPLY_STOP, 2, "Hello", "", NULL, 0, 0 },
    { "rate-hung", FAULT_NONE, REPLY_STOP, 2, "Hello", "", NULL, 0, 0 },
    { "quota", FAULT_QUOTA, REPLY_FAILED, 1, "", "exceeded your current quota", NULL, 0, 0 },
    { "shaky", FAULT_NONE, REPLY_STOP, 4, "Hello", "", NULL, 0, 0 },
    { "down", FAULT_SERVER, REPLY_FAILED, 4, "", "internal", NULL, 0, 0 },
    { "drop", FAULT_NONE, REPLY_STOP, 2, "Hello", "", NULL, 0, 0 },
    { "drop-after-reason", FAULT_NONE, REPLY_STOP, 1, "Hello", "", NULL, 0, 0 },
    { "silent", FAULT_TIMEOUT, REPLY_FAILED, 4, "", "no first byte", NULL, 1, 0 },
    { "stall", FAULT_TIMEOUT, REPLY_CUT, 4, "Hel", "no byte for too long", NULL, 0, 50 },
    { "linger", FAULT_NONE, REPLY_STOP, 1, "Hello", "", NULL, 0, 0 },
    { "slow", FAULT_NONE, REPLY_STOP, 1, "Hello", "", NULL, 0, 1000 },
    { "redirect", FAULT_REDIRECT, REPLY_FAILED, 1, "", "sends us to 127.0.0.1;", NULL, 0, 0 },
    { "garbage", FAULT_GARBAGE, REPLY_FAILED, 4, "", "hotel", NULL, 0, 0 },
    { "options", FAULT_NONE, REPLY_STOP, 2, "Hello", "", "without stream_options", 0, 0 },
    { "llamacpp", FAULT_NONE, REPLY_STOP, 2, "Hello", "", "without logprobs", 0, 0 },
    { "nameless", FAULT_NONE, REPLY_STOP, 5, "Hello", "", "without a stream", 0, 0 },
    { "broken", FAULT_NONE, REPLY_STOP, 2, "", "", "asked again without a stream", 0, 0 },
    { "room", FAULT_NONE, REPLY_STOP, 2, "Hello", "", "fewer max_tokens", 0, 0 },
    { "auth", FAULT_AUTH, REPLY_FAILED, 1, "", "Bearer [key] (key: LLM_TEST_KEY)", NULL, 0, 0 },
    { "overflow", FAULT_CONTEXT, REPLY_FAILED, 1, "", "too long", NULL, 0, 0 },
    { "filter", FAULT_REFUSED, REPLY_REFUSED, 1, "", "blocked", NULL, 0, 0 },
};

static void row_check(struct stage *s, const struct row *row)
{
    struct llm_spec spec = spec_of(s, row->scenario);
    spec.times.first_byte_ms = row->first_byte_ms;
    spec.times.idle_ms = row->idle_ms;
    if (row->first_byte_ms > 0)
        spec.times.connect_ms = 200;
    struct llm_call *c = started(s, &spec);
    const struct llm_outcome *o = ended(s, c);
    own_json got = json_pack("{s:s, s:s, s:i, s:i}", "fault", fault_name(o->fault.kind), "end",
                             reply_end_name(o->reply.end), "tries", o->n_tries, "hits",
                             hits(s, row->scenario));
    own_json want = json_pack("{s:s, s:s, s:i, s:i}", "fault", fault_name(row->fault), "end",
                              reply_end_name(row->end), "tries", row->tries, "hits", row->tries);
    own_mem char *g = json_dumps(got, 0), *w = NULL;
    if (!json_equal(got, want)) {
        w = json_dumps(want, 0);
        print_error("%s: %s, wanted %s; %.*s; %.*s\n", row->scenario, g, w,
                    STR_FMT(o->fault.message), STR_FMT(o->changes));
        free(w);
    }
    assert_true(json_equal(got, want));
    assert_true(str_eq(o->reply.text, str_from(row->text)));
    const char *message = str_z(&s->a, o->fault.message);
    assert_true(row->message[0] != '\0' ? strstr(message, row->message) != NULL
                                        : message[0] == '\0');
    assert_null(strstr(message, KEY));
    const char *changes = str_z(&s->a, o->changes);
    assert_true(row->changes ? strstr(changes, row->changes) != NULL : changes[0] == '\0');
    llm_call_free(c);
}

static void scenarios(void **state)
{
    for (size_t i = 0; i < COUNT(rows); i++)
        row_check(*state, &rows[i]);
}

/* ---- what rows do not say ---- */

static void what_was_learnt_stays_with_the_endpoint(void **state)
{
    struct stage *s = *state;
    struct llm_spec spec = spec_of(s, "options");
    struct err err = { 0 };
    struct llm_endpoint *e = NULL;
    struct llm_call *c = NULL;
    assert_int_equal(llm_endpoint_add(s->llm, &spec, &e, &err), OK);
    struct llm_ask ask = { .endpoint = e, .chat = &hello, .sampling = &sampling, .tag = 42 };
    for (int i = 0; i < 2; i++) {
        assert_int_equal(llm_start(s->llm, &ask, &c, &err), OK);
        assert_int_equal(ended(s, c)->n_tries, i == 0 ? 2 : 1);
        llm_call_free(c);
    }
    assert_false(llm_endpoint_compat(e).stream_usage);
    assert_false(last_body_has(s, "options", "stream_options"));
    assert_true(last_body_has(s, "options", "logprobs"));
}

static void what_was_tried_in_vain_does_not(void **state)
{
    struct stage *s = *state;
    struct llm_spec spec = spec_of(s, "missing");
    struct err err = { 0 };
    struct llm_endpoint *e = NULL;
    struct llm_call *c = NULL;
    assert_int_equal(llm_endpoint_add(s->llm, &spec, &e, &err), OK);
    struct llm_ask ask = { .endpoint = e, .chat = &hello, .sampling = &sampling, .tag = 42 };
    const struct compat before = llm_endpoint_compat(e);
    assert_int_equal(llm_start(s->llm, &ask, &c, &err), OK);
    const struct llm_outcome *o = ended(s, c);
    assert_int_equal(o->fault.kind, FAULT_REQUEST);
    assert_int_equal(o->fault.status, 404);
    assert_true(o->n_tries > 1 && o->n_tries == hits(s, "missing"));
    llm_call_free(c);
    const struct compat after = llm_endpoint_compat(e);
    assert_true(compat_equal(&before, &after));
}

static void nobody_else_is_contacted(void **state)
{
    struct stage *s = *state;
    const char *trap = arena_fmt(&s->a, "http://127.0.0.1:%d", (int)s->trap);
    static const char *const names[] = { "http_proxy",  "HTTP_PROXY", "https_proxy",
                                         "HTTPS_PROXY", "all_proxy",  "ALL_PROXY" };
    for (size_t i = 0; i < COUNT(names); i++)
        setenv(names[i], trap, 1);
    static const char *const scenarios_of[] = { "ok", "redirect" };
    for (size_t i = 0; i < COUNT(scenarios_of); i++) {
        struct llm_spec spec = spec_of(s, scenarios_of[i]);
        struct llm_call *c = started(s, &spec);
        assert_int_equal(ended(s, c)->fault.kind, i == 0 ? FAULT_NONE : FAULT_REDIRECT);
        llm_call_free(c);
    }
    own_json before = seen(s);
    assert_int_equal(json_array_size(json_object_get(before, "trapped")), 0);

    struct llm_spec spec = spec_of(s, "ok"); /* the trap does catch who is sent there */
    spec.proxy = trap;
    spec.tries_max = 1;
    struct llm_call *c = started(s, &spec);
    assert_int_equal(ended(s, c)->fault.kind, FAULT_CUT);
    llm_call_free(c);
    own_json after = seen(s);
    assert_int_equal(json_array_size(json_object_get(after, "trapped")), 1);
    for (size_t i = 0; i < COUNT(names); i++)
        unsetenv(names[i]);
}

static void certificates_are_checked(void **state)
{
    struct stage *s = *state;
    for (int trusted = 0; trusted < 2; trusted++) {
        struct llm_spec spec = spec_of(s, "ok");
        spec.base_url = arena_fmt(&s->a, "https://127.0.0.1:%d/ok", (int)s->tls);
        spec.ca_file = trusted ? s->ca : NULL;
        int before = hits(s, "ok");
        struct llm_call *c = started(s, &spec);
        const struct llm_outcome *o = ended(s, c);
        assert_int_equal(o->fault.kind, trusted ? FAULT_NONE : FAULT_TLS);
        assert_int_equal(o->n_tries, 1);
        assert_int_equal(hits(s, "ok") - before, trusted);
        llm_call_free(c);
    }
}

static void many_calls_few_at_a_time(void **state)
{
    struct stage *s = *state;
    struct llm_spec spec = spec_of(s, "busy");
    struct err err = { 0 };
    struct llm_endpoint *e = NULL;
    struct llm_call *c = NULL;
    const int n = 60;
    uint64_t tags = 0;
    spec.in_flight_max = 3;
    assert_int_equal(llm_endpoint_add(s->llm, &spec, &e, &err), OK);
    for (int i = 0; i < n; i++) {
        struct llm_ask ask = {
            .endpoint = e, .chat = &hello, .sampling = &sampling, .tag = (uint64_t)1 << i
        };
        assert_int_equal(llm_start(s->llm, &ask, &c, &err), OK);
    }
    for (int i = 0; i < n; i++) {
        for (c = NULL; c == NULL;)
            assert_int_equal(llm_step(s->llm, 1000, &c, &err), OK);
        assert_int_equal(llm_call_outcome(c)->fault.kind, FAULT_NONE);
        tags |= llm_call_tag(c);
        llm_call_free(c);
    }
    assert_true(tags == ((uint64_t)1 << n) - 1);
    own_json j = seen(s);
    assert_in_range(json_integer_value(json_object_get(j, "most")), 1, 3);
}

/* The first is told to wait; the second, that would find the server ready, waits with it. */
static void a_named_wait_holds_for_all(void **state)
{
    struct stage *s = *state;
    struct llm_spec spec = spec_of(s, "rate-twice");
    struct err err = { 0 };
    struct llm_endpoint *e = NULL;
    struct llm_call *c[2] = { NULL, NULL }, *first = NULL, *second = NULL;
    spec.in_flight_max = 1;
    spec.times.wait_max_ms = 100;
    assert_int_equal(llm_endpoint_add(s->llm, &spec, &e, &err), OK);
    struct llm_ask ask = { .endpoint = e, .chat = &hello, .sampling = &sampling };
    for (int i = 0; i < 2; i++)
        assert_int_equal(llm_start(s->llm, &ask, &c[i], &err), OK);
    while (first == NULL)
        assert_int_equal(llm_step(s->llm, 1000, &first, &err), OK);
    while (second == NULL)
        assert_int_equal(llm_step(s->llm, 1000, &second, &err), OK);
    assert_ptr_equal(first, c[0]);
    assert_int_equal(llm_call_outcome(first)->n_tries, 2);
    assert_int_equal(llm_call_outcome(second)->n_tries, 1);
    llm_call_free(first);
    llm_call_free(second);
}

static void cancelled_calls_end(void **state)
{
    struct stage *s = *state;
    struct err err = { 0 };
    struct llm_call *none = NULL;
    struct llm_spec spec = spec_of(s, "stall");
    struct llm_call *c = started(s, &spec);
    while (llm_call_progress(c).text.len == 0)
        assert_int_equal(llm_step(s->llm, 1000, &none, &err), OK);
    assert_int_equal(llm_call_progress(c).state, LLM_IN_FLIGHT);
    assert_true(str_eq(llm_call_progress(c).text, S("Hel")));
    llm_cancel(c);
    assert_int_equal(ended(s, c)->fault.kind, FAULT_CANCELLED);
    assert_int_equal(llm_call_progress(c).state, LLM_ENDED);
    llm_cancel(c);
    llm_call_free(c);

    c = started(s, &spec); /* not yet begun */
    llm_cancel(c);
    assert_int_equal(ended(s, c)->n_tries, 0);
    llm_call_free(c);
    started(s, &spec); /* llm_close frees it */
    assert_int_equal(llm_step(s->llm, 0, &none, &err), OK);
    assert_null(none);
}

static void the_other_dialect(void **state)
{
    struct stage *s = *state;
    struct llm_spec spec = spec_of(s, "claude");
    own_arena tmp = { 0 };
    struct err err = { 0 };
    const char *dir, *path;
    assert_int_equal(dir_temp(&tmp, "/tmp", "ca-llm", &dir, &err), OK);
    path = path_join(&tmp, dir, "key");
    assert_int_equal(file_write(path, S(KEY "\n"), 0600, &err), OK);
    spec.dialect = DIALECT_ANTHROPIC;
    spec.key_env = NULL;
    spec.key_file = path;
    struct llm_call *c = started(s, &spec);
    const struct llm_outcome *o = ended(s, c);
    assert_int_equal(o->fault.kind, FAULT_NONE);
    assert_int_equal(o->n_tries, 2);
    assert_true(str_eq(o->reply.text, S("Hello")));
    assert_int_equal(o->reply.usage.input_total, 3);
    llm_call_free(c);
    assert_int_equal(dir_remove(dir, &err), OK);
}

static void tokens_in_tokens_out(void **state)
{
    static const int32_t prompt[] = { 1, 2, 3 };
    static const struct generate g = {
        .prompt = prompt, .n_prompt = 3, .max_tokens = 5, .temperature = 1, .top_p = 1
    };
    struct stage *s = *state;
    for (int api = GENERATE_VLLM; api <= GENERATE_SGLANG; api++) {
        struct llm_spec spec = spec_of(s, "tokens");
        struct err err = { 0 };
        struct llm_endpoint *e = NULL;
        struct llm_call *c = NULL;
        spec.generate_api = (enum generate_api)api;
        assert_int_equal(llm_endpoint_add(s->llm, &spec, &e, &err), OK);
        struct llm_ask ask = { .endpoint = e, .generate = &g, .tag = 42 };
        assert_int_equal(llm_start(s->llm, &ask, &c, &err), OK);
        const struct llm_outcome *o = ended(s, c);
        assert_int_equal(o->fault.kind, FAULT_NONE);
        assert_int_equal(o->n_tries, api == GENERATE_VLLM ? 2 : 1);
        assert_int_equal(o->generated.n, 2);
        assert_int_equal(o->generated.ids[1], 8);
        assert_true(o->generated.logprob[0] == -0.5);
        assert_int_equal(o->generated.end, api == GENERATE_VLLM ? GENERATE_LENGTH : GENERATE_STOP);
        llm_call_free(c);
    }
}

static void settings_that_cannot_be(void **state)
{
    static const struct {
        const char *url, *key_env, *key_file, *settings, *header, *error;
    } rows_of[] = {
        { "ftp://h", NULL, NULL, NULL, NULL, "is not an address" },
        { "h:80 00", NULL, NULL, NULL, NULL, "is not an address" },
        { NULL, NULL, NULL, NULL, NULL, "without an address" },
        { "http://me:" KEY "@h", NULL, NULL, NULL, NULL, "name or password" },
        { "http://h/?key=1", NULL, NULL, NULL, NULL, "is not an address" },
        { "http://h", "LLM_TEST_NO_KEY", NULL, NULL, NULL, "LLM_TEST_NO_KEY is not set" },
        { "http://h", "LLM_TEST_TWO_LINES", NULL, NULL, NULL, "no blanks or control" },
        { "http://h", "LLM_TEST_EMPTY", NULL, NULL, NULL, "holds no key" },
        { "http://h", NULL, "/nonexistent/key", NULL, NULL, "/nonexistent/key" },
        { "http://h", NULL, NULL, "sed=false", NULL, "no compat setting 'sed'" },
        { "http://h", NULL, NULL, "seed=maybe", NULL, "'maybe' is not true or false" },
        { "http://h", NULL, NULL, NULL, "X-A: b\r\nX-C: d", "Name: value" },
    };
    struct stage *s = *state;
    setenv("LLM_TEST_TWO_LINES", KEY "\n" KEY, 1);
    setenv("LLM_TEST_EMPTY", " ", 1);
    for (size_t i = 0; i < COUNT(rows_of); i++) {
        struct err err = { 0 };
        struct llm_endpoint *e = NULL;
        const char *const headers[] = { rows_of[i].header, NULL };
        struct llm_spec spec = { .base_url = rows_of[i].url,
                                 .model = "m",
                                 .key_env = rows_of[i].key_env,
                                 .key_file = rows_of[i].key_file,
                                 .settings = rows_of[i].settings,
                                 .headers = headers };
        assert_true(llm_endpoint_add(s->llm, &spec, &e, &err) != OK);
        assert_null(e);
        if (strstr(err.text, rows_of[i].error) == NULL)
            print_error("row %zu: %s\n", i, err.text);
        assert_non_null(strstr(err.text, rows_of[i].error));
        assert_null(strstr(err.text, KEY));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scenarios),
        cmocka_unit_test(what_was_learnt_stays_with_the_endpoint),
        cmocka_unit_test(what_was_tried_in_vain_does_not),
        cmocka_unit_test(nobody_else_is_contacted),
        cmocka_unit_test(certificates_are_checked),
        cmocka_unit_test(many_calls_few_at_a_time),
        cmocka_unit_test(a_named_wait_holds_for_all),
        cmocka_unit_test(cancelled_calls_end),
        cmocka_unit_test(the_other_dialect),
        cmocka_unit_test(tokens_in_tokens_out),
        cmocka_unit_test(settings_that_cannot_be),
    };
    return cmocka_run_group_tests(tests, stage_open, stage_close);
}
