/* The log: whole lines only, one writer, half a line cut off. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/json.h"
#include "sys/file.h"
#include "sys/runlog.h"

/* S() as a constant initialiser. */
#define LIT(text)                 \
    {                             \
        "" text, sizeof(text) - 1 \
    }

#define START "{\"v\":1,\"at\":5,\"event\":\"start\"}\n"

static const struct {
    const char *name;
    struct str text;
    const char *error; /* NULL: taken */
    size_t events, whole;
} rows[] = {
    { "empty", LIT(""), NULL, 0, 0 },
    { "two events", LIT(START START), NULL, 2, 2 * (sizeof START - 1) },
    { "half a last line", LIT(START "{\"v\":1,\"ev"), NULL, 1, sizeof START - 1 },
    { "only half a line", LIT("{\"v\":1"), NULL, 0, 0 },
    { "a whole event without its line end is half a line", LIT("{\"v\":1,\"event\":\"start\"}"),
      NULL, 0, 0 },
    { "garbage in the middle", LIT(START "garbage\n" START), "line 2", 0, 0 },
    { "an empty line", LIT(START "\n"), "line 2", 0, 0 },
    { "an event without a name", LIT("{\"v\":1}\n"), "'event' is missing", 0, 0 },
    { "a version of tomorrow", LIT("{\"v\":2,\"event\":\"start\"}\n"), "version 2", 0, 0 },
};

static void texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        own_json events = NULL;
        struct err err = { 0 };
        size_t whole = 0;
        print_message("%s\n", rows[i].name);
        enum err_code code = runlog_parse(rows[i].text, &events, &whole, &err);
        if (rows[i].error != NULL) {
            assert_int_equal(code, ERR_FORMAT);
            if (strstr(err.text, rows[i].error) == NULL)
                fail_msg("'%s' does not say '%s'", err.text, rows[i].error);
            continue;
        }
        assert_string_equal(code == OK ? "" : err.text, "");
        assert_int_equal(json_array_size(events), rows[i].events);
        assert_int_equal(whole, rows[i].whole);
    }
}

static void a_file(void **state)
{
    (void)state;
    own_arena a = { 0 };
    struct err err = { 0 };
    struct runlog log = RUNLOG_CLOSED, second = RUNLOG_CLOSED;
    own_json none = NULL;
    own_json never = NULL;
    own_json three = NULL;
    const char *dir = NULL;
    assert_int_equal(dir_temp(&a, "/tmp", "runlog", &dir, &err), OK);
    const char *path = path_join(&a, dir, "run.jsonl");
    assert_int_equal(file_write(path, S(START "{\"v\":1,\"half"), 0644, &err), OK);
    assert_int_equal(runlog_open(&a, path, &log, &none, &err), OK);
    assert_int_equal(json_array_size(none), 1);
    assert_int_equal(runlog_open(&a, path, &second, &never, &err), ERR_STATE);
    assert_int_equal(runlog_add(&log, "attempt", json_pack("{s:i}", "n", 1), &err), OK);
    assert_int_equal(runlog_add(&log, "attempt", json_pack("{s:i}", "n", 2), &err), OK);
    assert_int_equal(runlog_add(&log, "attempt", NULL, &err), ERR_SYSTEM);
    runlog_close(&log);
    assert_int_equal(runlog_open(&a, path, &log, &three, &err), OK);
    assert_int_equal(json_array_size(three), 3);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(three, 2), "n")), 2);
    runlog_close(&log);
    assert_int_equal(dir_remove(dir, &err), OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(texts), cmocka_unit_test(a_file) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
