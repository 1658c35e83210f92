/* The endpoint's options: to a spec, with what is kept, and back after a run has learnt. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "app/endpoint.h"
#include "core/own.h"
#include "sys/file.h"

#define URL "http://127.0.0.1:9"

static struct endpoint_options options;
static const struct field fields[] = { ENDPOINT_FIELDS(options) };

static int fresh(void **state)
{
    static char dir[64];
    struct err err = { 0 };
    own_arena a = { 0 };
    const char *made = NULL;
    assert_int_equal(dir_temp(&a, "/tmp", "app-endpoint-", &made, &err), OK);
    snprintf(dir, sizeof dir, "%s", made);
    setenv("CUDA_AGENT_HOME", dir, 1);
    options = (struct endpoint_options)ENDPOINT_DEFAULTS;
    options.url = S(URL "/v1/");
    options.model = S("m");
    *state = dir;
    return 0;
}

static int swept(void **state)
{
    struct err err = { 0 };
    return dir_remove(*state, &err) == OK ? 0 : -1;
}

static void set(const char *name, const char *value)
{
    struct err err = { 0 };
    const struct field *f = field_find(fields, COUNT(fields), str_from(name));
    assert_non_null(f);
    assert_string_equal(field_set(f, str_from(value), &err) == OK ? "" : err.text, "");
}

static void rows_bind(void **state)
{
    (void)state;
    assert_true(options.temperature < 0);
    set("temperature", "0.6");
    set("price-input", "3");
    set("price_cached", "0.3");
    set("price_output", "15");
    set("in_flight", "64");
    set("dialect", "anthropic");
    set("window", "131072");
    struct reply_usage u = { .input_total = 2000000,
                             .input_cached = 1000000,
                             .output_total = 100000 };
    assert_true(endpoint_cost(&options, &u) == 3 + 0.3 + 1.5);
    options.price_cached = -1;
    assert_true(endpoint_cost(&options, &u) == 3 + 3 + 1.5);
}

static void what_is_kept_comes_first_then_the_options(void **state)
{
    own_arena a = { 0 };
    struct err err = { 0 };
    struct llm_spec spec;
    struct endpoint_record r, kept = { .dialect = DIALECT_OPENAI, .window = 8192, .model = "m" };
    const char *step = "without seed";
    (void)state;
    assert_int_equal(endpoint_spec(&a, &options, &spec, &r, &err), OK);
    assert_false(r.found);
    assert_int_equal(r.window, 0);
    kept.compat = compat_for(DIALECT_OPENAI, S(URL), S("m"));
    kept.compat.seed = kept.compat.top_p = false;
    kept.steps = &step;
    kept.n_steps = 1;
    assert_int_equal(endpoint_record_write(URL, "m", &kept, &err), OK); /* "/v1/" is the same */
    options.compat = S("top_p=true stream=false");
    assert_int_equal(endpoint_spec(&a, &options, &spec, &r, &err), OK);
    assert_true(r.found);
    assert_int_equal(r.window, 8192);
    assert_string_equal(r.steps[0], "without seed");
    struct compat c = compat_for(DIALECT_OPENAI, S(URL), S("m"));
    assert_int_equal(compat_set(&c, str_from(spec.settings), &err), OK);
    assert_false(c.seed);
    assert_true(c.top_p);
    assert_false(c.stream);
    options.window = 4096;
    assert_int_equal(endpoint_spec(&a, &options, &spec, &r, &err), OK);
    assert_int_equal(r.window, 4096);
    options.dialect = 2; /* a record of the other dialect says nothing */
    options.compat = (struct str){ 0 };
    assert_int_equal(endpoint_spec(&a, &options, &spec, &r, &err), OK);
    assert_int_equal(spec.dialect, DIALECT_ANTHROPIC);
    assert_string_equal(spec.settings, "");
}

static void the_model_that_doctor_found(void **state)
{
    own_arena a = { 0 };
    struct err err = { 0 };
    struct llm_spec spec;
    struct endpoint_record r, kept = { .dialect = DIALECT_ANTHROPIC, .model = "the-one" };
    (void)state;
    options.model = (struct str){ 0 };
    assert_int_equal(endpoint_spec(&a, &options, &spec, &r, &err), ERR_USAGE);
    assert_non_null(strstr(err.text, "which model"));
    kept.compat = compat_for(DIALECT_ANTHROPIC, S(URL), S("the-one"));
    assert_int_equal(endpoint_record_write(URL, "", &kept, &err), OK);
    kept.compat.temperature = false; /* learnt since */
    assert_int_equal(endpoint_record_write(URL, "the-one", &kept, &err), OK);
    assert_int_equal(endpoint_spec(&a, &options, &spec, &r, &err), OK);
    assert_string_equal(spec.model, "the-one");
    assert_false(r.compat.temperature);
    assert_int_equal(spec.dialect, DIALECT_ANTHROPIC);
}

/* Only what the ladder changed is kept: not what the options said. */
static void what_a_run_learns(void **state)
{
    own_arena a = { 0 };
    struct err err = { 0 };
    struct llm_spec spec, changed;
    struct endpoint_record r;
    struct llm *l = NULL;
    struct llm_endpoint *e = NULL;
    (void)state;
    options.compat = S("seed=false");
    assert_int_equal(endpoint_spec(&a, &options, &spec, &r, &err), OK);
    assert_int_equal(llm_open(&l, &err), OK);
    assert_int_equal(llm_endpoint_add(l, &spec, &e, &err), OK);
    assert_int_equal(endpoint_learnt(&spec, &r, e, &err), OK);
    assert_int_equal(endpoint_record_read(&a, URL, "m", &r, &err), OK);
    assert_false(r.found); /* nothing was learnt */
    assert_int_equal(endpoint_spec(&a, &options, &spec, &r, &err), OK);
    changed = spec;
    changed.settings = "seed=false stream_usage=false"; /* as the ladder leaves it */
    assert_int_equal(llm_endpoint_add(l, &changed, &e, &err), OK);
    assert_int_equal(endpoint_learnt(&spec, &r, e, &err), OK);
    assert_int_equal(endpoint_record_read(&a, URL, "m", &r, &err), OK);
    assert_true(r.found);
    assert_true(r.compat.seed);
    assert_false(r.compat.stream_usage);
    llm_close(l);
}

static void the_fallback_has_its_own_key(void **state)
{
    struct endpoint_options other;
    (void)state;
    assert_false(endpoint_fallback(&options, &other));
    set("key_env", "A");
    set("fallback", "http://b");
    assert_true(endpoint_fallback(&options, &other));
    assert_true(str_eq(other.url, S("http://b")));
    assert_true(str_eq(other.model, S("m")));
    assert_int_equal(other.key_env.len, 0);
    assert_int_equal(other.fallback.len, 0);
}

static void what_is_wrong_is_said(void **state)
{
    own_arena a = { 0 };
    struct err err = { 0 };
    struct llm_spec spec;
    struct endpoint_record r, kept = { .model = "m" };
    struct str *files = NULL;
    size_t n = 0;
    options.compat = S("nonsense=1");
    assert_int_equal(endpoint_spec(&a, &options, &spec, &r, &err), ERR_CONFIG);
    options.compat = (struct str){ 0 };
    options.key_env = options.key_file = S("x");
    assert_int_equal(endpoint_spec(&a, &options, &spec, &r, &err), ERR_USAGE);
    options.key_env = (struct str){ 0 };
    options.url = (struct str){ 0 };
    assert_int_equal(endpoint_spec(&a, &options, &spec, &r, &err), ERR_USAGE);
    options.url = S(URL);
    assert_int_equal(endpoint_record_write(URL, "m", &kept, &err), OK);
    const char *dir = path_join(&a, *state, "endpoints");
    assert_int_equal(dir_list(&a, dir, NULL, &files, &n, &err), OK);
    assert_int_equal(n, 1);
    assert_int_equal(file_write(path_join(&a, dir, str_z(&a, files[0])), S("{}"), 0600, &err), OK);
    assert_int_equal(endpoint_spec(&a, &options, &spec, &r, &err), ERR_FORMAT);
    assert_non_null(strstr(err.hint, "remove that file"));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, fresh, swept)
    const struct CMUnitTest tests[] = {
        TEST(rows_bind),
        TEST(what_is_kept_comes_first_then_the_options),
        TEST(the_model_that_doctor_found),
        TEST(what_a_run_learns),
        TEST(the_fallback_has_its_own_key),
        TEST(what_is_wrong_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
