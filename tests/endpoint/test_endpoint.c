/* The scripted endpoint against src/llm: every disguise, every trouble, a thousand streams at once;
 * and what finds the turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/json.h"
#include "endpoint/play.h"
#include "llm/llm.h"
#include "sys/file.h"

/* ---- a server of our own ---- */

struct served {
    pid_t pid;
    int64_t port;
};

static struct served serve(struct arena *a, const char *as, const char *script)
{
    struct served s = { 0 };
    struct err err = { 0 };
    const char *dir = NULL;
    int out[2];
    char line[32];
    assert_int_equal(program_dir(a, &dir, &err), OK);
    assert_int_equal(pipe(out), 0);
    s.pid = fork();
    if (s.pid == 0) {
        dup2(out[1], 1);
        close(out[0]);
        execl(path_join(a, dir, "scripted_endpoint"), "scripted_endpoint", "--as", as, script,
              NULL);
        _exit(127);
    }
    close(out[1]);
    ssize_t n = read(out[0], line, sizeof line);
    close(out[0]);
    assert_true(n > 1);
    assert_int_equal(str_int((struct str){ line, (size_t)n - 1 }, 1, 65535, &s.port, &err), OK);
    return s;
}

static void served_end(struct served *s)
{
    int status = -1;
    kill(s->pid, SIGTERM);
    waitpid(s->pid, &status, 0);
    assert_int_equal(status, 0); /* leaks and worse show here */
}

static const char *written(struct arena *a, const char *json)
{
    struct err err = { 0 };
    const char *dir = NULL;
    assert_int_equal(dir_temp(a, "/tmp", "endpoint-", &dir, &err), OK);
    const char *path = path_join(a, dir, "m.json");
    assert_int_equal(file_write(path, str_from(json), 0600, &err), OK);
    return path;
}

/* ---- the turn ---- */

#define CONVERSATION(x) \
    "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"go\"}" x "]}"
#define ANSWER(text) ",{\"role\":\"assistant\",\"content\":\"" text "\"}"
#define CALLED(id)                                           \
    ",{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"" id \
    "\",\"type\":\"function\",\"function\":{\"name\":\"Bash\",\"arguments\":\"{}\"}}]}"
#define RESULT(id, text) ",{\"role\":\"tool\",\"tool_call_id\":\"" id "\",\"content\":\"" text "\"}"

static const char jumping[] =
    "{\"turns\":[{\"name\":\"a\",\"next\":[{\"result\":\"error: (.*)$\",\"turn\":\"c\"}]},"
    "{\"name\":\"b\"},{\"name\":\"c\",\"then\":\"a\",\"text\":\"saw $1\"}]}";

static void turns_are_found(void **state)
{
    static const struct {
        const char *body, *turn;
        size_t place;
    } rows[] = {
        { CONVERSATION(""), "a", 0 },
        { CONVERSATION(ANSWER("x") RESULT("1", "fine")), "b", 1 },
        { CONVERSATION(ANSWER("x") RESULT("1", "error: no semicolon")), "c", 1 },
        { CONVERSATION(ANSWER("x") RESULT("1", "error: it") ANSWER("y") RESULT("2", "fine")), "a",
          2 },
        { CONVERSATION(ANSWER("x") ANSWER("x") ANSWER("x") ANSWER("x")), "b", 4 },
    };
    own_arena a = { 0 };
    struct err err = { 0 };
    struct script s;
    struct id_form form = { "call_", 24, false };
    (void)state;
    assert_int_equal(script_read(&a, written(&a, jumping), &s, &err), OK);
    for (size_t i = 0; i < COUNT(rows); i++) {
        own_json body = json_loads(rows[i].body, 0, NULL);
        struct talk talk;
        struct str caught[GROUPS];
        size_t place = 99;
        assert_int_equal(talk_read(&a, API_OPENAI, body, &talk, &err), OK);
        struct turn *t = script_turn(&a, &s, &talk, &form, &place, caught);
        assert_string_equal(t->name, rows[i].turn);
        assert_int_equal(place, rows[i].place);
        if (i == 2)
            assert_true(str_eq(caught[1], S("no semicolon")));
    }
    script_fini(&s);
}

static void ids_tell_where_they_are_from(void **state)
{
    static const struct id_form forms[] = { { "call_", 24, false },
                                            { "chatcmpl-tool-", 32, true },
                                            { "", 32, false },
                                            { "call_", 8, false } };
    own_arena a = { 0 };
    (void)state;
    for (size_t i = 0; i < COUNT(forms); i++) {
        const char *id = id_make(&a, &forms[i], 17, 300, 2);
        size_t turn = 0, place = 0;
        assert_int_equal(strlen(id), strlen(forms[i].prefix) + (size_t)forms[i].len);
        assert_true(id_read(&a, &forms[i], str_from(id), &turn, &place));
        assert_int_equal(turn, 17);
        assert_int_equal(place, 300);
        assert_false(id_read(&a, &forms[i], S("call_something-else"), &turn, &place));
    }
    struct script s;
    struct err err = { 0 };
    struct talk talk;
    struct str caught[GROUPS];
    size_t place;
    assert_int_equal(script_read(&a, written(&a, jumping), &s, &err), OK);
    const char *id = id_make(&a, &forms[0], 2, 40, 0);
    own_json body =
        json_loads(arena_fmt(&a, CONVERSATION(CALLED("%s") RESULT("%s", "x")), id, id), 0, NULL);
    assert_int_equal(talk_read(&a, API_OPENAI, body, &talk, &err), OK);
    assert_string_equal(script_turn(&a, &s, &talk, &forms[0], &place, caught)->name, "a");
    assert_int_equal(place, 41); /* though one answer only is left of the history */
    script_fini(&s);
}

static void tokens_can_be_read_back(void **state)
{
    static const char text[] = "<|im_start|>user\nh\xc3\xa9llo \xf0\x9f\x98\x80<|im_end|>\n";
    own_arena a = { 0 };
    int32_t *ids = NULL;
    size_t n = 0;
    struct buf b = { .arena = &a, .max = 1000 };
    (void)state;
    tokens_add(&a, &ids, &n, str_from(text));
    assert_int_equal(ids[0], ID_START);
    for (size_t i = 0; i < n; i++)
        buf_add(&b, token_text(&a, ids[i]));
    assert_true(str_eq((struct str){ b.ptr, b.len }, str_from(text)));
}

static void wrong_scripts_are_refused(void **state)
{
    static const struct {
        const char *json, *words;
    } rows[] = {
        { "{\"turns\":[]}", "wanted 1 to" },
        { "{\"turns\":[{\"txt\":\"a\"}]}", "unknown key 'txt'" },
        { "{\"turns\":[{\"then\":\"x\"}]}", "no turn 'x'" },
        { "{\"turns\":[{\"next\":[{\"result\":\"(\",\"turn\":\"a\"}],\"name\":\"a\"}]}",
          "is no pattern" },
        { "{\"turns\":[{\"faults\":[{\"kind\":\"rain\"}]}]}", "kind: 'rain' is none of" },
        { "{\"turns\":[{\"end\":\"soon\"}]}", "end: 'soon' is none of" },
        { "{\"turns\":[{\"calls\":[{}]}]}", "a call wants a name" },
    };
    own_arena a = { 0 };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct err err = { 0 };
        struct script s = { 0 };
        assert_int_not_equal(script_read(&a, written(&a, rows[i].json), &s, &err), OK);
        if (strstr(err.text, rows[i].words) == NULL)
            fail_msg("'%s' does not say '%s'", err.text, rows[i].words);
        script_fini(&s);
    }
}

/* ---- over the wire ---- */

static const char fields_schema[] =
    "{\"type\":\"object\",\"properties\":{\"command\":{\"type\":\"string\"}}}";
static const struct chat_tool tool = { .name = { "Bash", 4 },
                                       .description = { "runs", 4 },
                                       .schema = { fields_schema, sizeof fields_schema - 1 } };
static const struct chat_part go = { .kind = CHAT_TEXT, .text = { "go", 2 } };
static const struct chat_message first = { .parts = &go, .n_parts = 1 };
static const struct chat asked = {
    .messages = &first, .n_messages = 1, .tools = &tool, .n_tools = 1
};
static const struct chat_sampling sampling = { .max_tokens = 4000 };

static struct llm_spec spec_of(struct arena *a, const struct served *s, const char *as,
                               const char *model)
{
    bool anthropic = strcmp(as, "anthropic") == 0;
    return (struct llm_spec){ .base_url = arena_fmt(a, "http://127.0.0.1:%d", (int)s->port),
                              .model = model,
                              .dialect = anthropic ? DIALECT_ANTHROPIC : DIALECT_OPENAI,
                              .in_flight_max = 1000,
                              .tries_max = 3,
                              .times = { .backoff_ms = 1,
                                         .backoff_max_ms = 2,
                                         .wait_max_ms = 5,
                                         .idle_ms = 300,
                                         .first_byte_ms = 5000 } };
}

static struct llm_call *ended(struct llm *l)
{
    struct err err = { 0 };
    struct llm_call *c = NULL;
    while (c == NULL)
        assert_string_equal(llm_step(l, 1000, &c, &err) == OK ? "" : err.text, "");
    return c;
}

static const struct row {
    const char *turn; /* members of the one turn */
    enum fault_kind fault;
    enum reply_end end;
    enum refused_by by; /* in OpenAI's dialect */
    int tries;
    const char *text; /* NULL: any */
    size_t n_calls;
} rows[] = {
    { "\"text\":\"h\xc3\xa9llo \xf0\x9f\x98\x80 wide world\"", 0, REPLY_STOP, 0, 1,
      "h\xc3\xa9llo \xf0\x9f\x98\x80 wide world", 0 },
    { "\"text\":\"a b c\",\"pieces\":\"words\",\"pace_ms\":2,\"cut_bytes\":7", 0, REPLY_STOP, 0, 1,
      "a b c", 0 },
    { "\"text\":\"a\",\"calls\":[{\"name\":\"Bash\",\"args\":{\"command\":\"ls\"}},"
      "{\"name\":\"Bash\",\"args\":{\"command\":\"pwd\"}}]",
      0, REPLY_STOP, 0, 1, "a", 2 },
    { "\"text\":\"late\",\"delay_ms\":120", 0, REPLY_STOP, 0, 1, "late", 0 },
    { "\"text\":\"half\",\"end\":\"length\"", 0, REPLY_LENGTH, 0, 1, "half", 0 },
    { "\"text\":\"no\",\"end\":\"refused\"", 0, REPLY_REFUSED, REFUSED_BY_STOP, 1, NULL, 0 },
    { "\"text\":\"no\",\"end\":\"refusal\"", 0, REPLY_REFUSED, REFUSED_BY_FIELD, 1, NULL, 0 },
    { "\"text\":\"no\",\"end\":\"filter\"", 0, REPLY_REFUSED, REFUSED_BY_FILTER, 1, NULL, 0 },
    { "\"text\":\"I'm sorry, but I can't help with that.\"", 0, REPLY_REFUSED, REFUSED_IN_WORDS, 1,
      NULL, 0 },
    { "\"text\":\"ok\",\"faults\":[{\"kind\":\"rate\",\"retry_after\":\"0\",\"times\":2}]", 0,
      REPLY_STOP, 0, 3, "ok", 0 },
    { "\"faults\":[{\"kind\":\"quota\"}]", FAULT_QUOTA, REPLY_FAILED, 0, 1, "", 0 },
    { "\"text\":\"ok\",\"faults\":[{\"kind\":\"server\"},{\"kind\":\"overloaded\"}]", 0, REPLY_STOP,
      0, 3, "ok", 0 },
    { "\"faults\":[{\"kind\":\"auth\"}]", FAULT_AUTH, REPLY_FAILED, 0, 1, "", 0 },
    { "\"faults\":[{\"kind\":\"context\"}]", FAULT_CONTEXT, REPLY_FAILED, 0, 1, "", 0 },
    { "\"text\":\"ok\",\"faults\":[{\"kind\":\"garbage\"}]", 0, REPLY_STOP, 0, 2, "ok", 0 },
    { "\"text\":\"a long text\",\"faults\":[{\"kind\":\"cut\",\"after\":3}]", 0, REPLY_STOP, 0, 2,
      "a long text", 0 },
    { "\"text\":\"a long text\",\"faults\":[{\"kind\":\"reset\",\"after\":3}]", 0, REPLY_STOP, 0, 2,
      "a long text", 0 },
    { "\"text\":\"a long text\",\"faults\":[{\"kind\":\"error\",\"after\":3}]", 0, REPLY_STOP, 0, 2,
      "a long text", 0 },
    { "\"text\":\"a long text\",\"faults\":[{\"kind\":\"hang\",\"after\":3}]", 0, REPLY_STOP, 0, 2,
      "a long text", 0 },
    { "\"text\":\"never\",\"faults\":[{\"kind\":\"server\",\"share\":1.0}]", FAULT_SERVER,
      REPLY_FAILED, 0, 3, "", 0 },
};

static void row_check(struct llm *l, const struct row *row, const char *as)
{
    own_arena a = { 0 };
    struct err err = { 0 };
    struct llm_endpoint *e = NULL;
    struct llm_call *c = NULL;
    struct served s = serve(&a, as, written(&a, arena_fmt(&a, "{\"turns\":[{%s}]}", row->turn)));
    struct llm_spec spec = spec_of(&a, &s, as, "m");
    spec.settings = strcmp(as, "openai") == 0 ? "limit=max_completion_tokens" : NULL;
    assert_int_equal(llm_endpoint_add(l, &spec, &e, &err), OK);
    assert_int_equal(
        llm_start(l, &(struct llm_ask){ .endpoint = e, .chat = &asked, .sampling = &sampling }, &c,
                  &err),
        OK);
    c = ended(l);
    const struct llm_outcome *o = llm_call_outcome(c);
    bool good = o->fault.kind == row->fault && o->reply.end == row->end &&
                o->n_tries == row->tries && o->reply.n_calls == row->n_calls &&
                (row->text == NULL || str_eq(o->reply.text, str_from(row->text)));
    bool anthropic = strcmp(as, "anthropic") == 0;
    if (row->end == REPLY_REFUSED && !anthropic)
        good = good && o->reply.refused_by == row->by;
    if (!good)
        fail_msg("%s as %s: %s, %s, %d tries, %zu calls, '%.*s' %.*s", row->turn, as,
                 fault_name(o->fault.kind), reply_end_name(o->reply.end), o->n_tries,
                 o->reply.n_calls, STR_FMT(o->reply.text), STR_FMT(o->fault.message));
    llm_call_free(c);
    served_end(&s);
}

static void all_rows_in_all_disguises(void **state)
{
    struct llm *l = NULL;
    struct err err = { 0 };
    (void)state;
    assert_int_equal(llm_open(&l, &err), OK);
    for (int d = 0; disguises[d] != NULL; d++)
        for (size_t i = 0; i < COUNT(rows); i++)
            row_check(l, &rows[i], disguises[d]->name);
    llm_close(l);
}

static void tokens_of_a_prompt(void **state)
{
    own_arena a = { 0 };
    struct err err = { 0 };
    struct llm *l = NULL;
    struct llm_endpoint *e = NULL;
    struct llm_call *c = NULL;
    int32_t *prompt = NULL;
    size_t n = 0;
    struct served s = serve(&a, "vllm",
                            written(&a, "{\"turns\":[{\"text\":\"one\"},"
                                        "{\"text\":\"two two\"}]}"));
    struct llm_spec spec = spec_of(&a, &s, "vllm", "m");
    (void)state;
    tokens_add(&a, &prompt, &n,
               S("<|im_start|>user\ngo<|im_end|>\n<|im_start|>assistant\none<|im_end|>\n"
                 "<|im_start|>tool\nx<|im_end|>\n<|im_start|>assistant\n"));
    struct generate g = { .prompt = prompt, .n_prompt = n, .max_tokens = 100, .top_p = 1 };
    assert_int_equal(llm_open(&l, &err), OK);
    assert_int_equal(llm_endpoint_add(l, &spec, &e, &err), OK);
    assert_int_equal(llm_start(l, &(struct llm_ask){ .endpoint = e, .generate = &g }, &c, &err),
                     OK);
    c = ended(l);
    const struct llm_outcome *o = llm_call_outcome(c);
    assert_int_equal(o->fault.kind, FAULT_NONE);
    assert_int_equal(o->generated.n, 4); /* 7 bytes, and the end */
    assert_int_equal(o->generated.ids[3], ID_END);
    assert_int_equal(o->generated.prompt_tokens, n);
    assert_true(str_eq(token_text(&a, o->generated.ids[0]), S("two")));
    llm_call_free(c);
    llm_close(l);
    served_end(&s);
}

#define CROWD 1000

/* All streams are open before the first one ends: each waits half a second for its first byte. */
static void a_thousand_streams(void **state)
{
    own_arena a = { 0 };
    struct err err = { 0 };
    struct llm *l = NULL;
    struct llm_endpoint *e = NULL;
    struct llm_call *c = NULL;
    struct served s = serve(&a, "vllm",
                            written(&a, "{\"turns\":[{\"text\":\"word word word word word\","
                                        "\"delay_ms\":1500,\"pace_ms\":1}]}"));
    struct llm_spec spec = spec_of(&a, &s, "vllm", "m");
    spec.times.idle_ms = 0; /* the default */
    (void)state;
    assert_int_equal(llm_open(&l, &err), OK);
    assert_int_equal(llm_endpoint_add(l, &spec, &e, &err), OK);
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(
            llm_start(l, &(struct llm_ask){ .endpoint = e, .chat = &asked, .sampling = &sampling },
                      &c, &err),
            OK);
    for (int i = 0; i < CROWD; i++) {
        c = ended(l);
        const struct llm_outcome *o = llm_call_outcome(c);
        assert_int_equal(o->fault.kind, FAULT_NONE);
        assert_int_equal(o->n_tries, 1);
        assert_true(str_eq(o->reply.text, S("word word word word word")));
        llm_call_free(c);
    }
    llm_close(l);
    served_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turns_are_found),           cmocka_unit_test(ids_tell_where_they_are_from),
        cmocka_unit_test(tokens_can_be_read_back),   cmocka_unit_test(wrong_scripts_are_refused),
        cmocka_unit_test(all_rows_in_all_disguises), cmocka_unit_test(tokens_of_a_prompt),
        cmocka_unit_test(a_thousand_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
