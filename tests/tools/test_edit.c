/* Replacing in a text: what is found, what is refused, and what the refusal says. */
#include "episode.h"

#include "tools/edit.h"

static void applies(void **state)
{
    static const struct {
        const char *text, *before, *after, *out;
        bool all;
        size_t n;
    } rows[] = {
        { "abc", "b", "x", "axc", false, 1 },
        { "abc", "abc", "", "", false, 1 },
        { "a\nb\n", "a\n", "", "b\n", false, 1 },
        { "a.a.a", "a", "bb", "bb.bb.bb", true, 3 },
        { "aaaa", "aa", "a", "aa", true, 2 }, /* places do not overlap */
        { "x\r\ny\r\n", "x\ny\n", "p\nq\nr\n", "p\r\nq\r\nr\r\n", false, 1 },
        { "x\r\ny\r\n", "x\r\ny", "p\r\nq", "p\r\nq\r\n", false, 1 },
        { "x\r\ny\n", "y", "p\nq", "x\r\np\nq\n", false, 1 }, /* mixed: as it is */
        { "\ttab", "\ttab", "    tab", "    tab", false, 1 },
        { "caf\xc3\xa9", "\xc3\xa9", "e", "cafe", false, 1 },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        own_arena a = { 0 };
        struct err err = { 0 };
        struct edited r = { 0 };
        struct edit e = { str_from(rows[i].before), str_from(rows[i].after), rows[i].all };
        if (edit_apply(&a, str_from(rows[i].text), &e, &r, &err) != OK)
            fail_msg("row %zu: %s", i, err.text);
        assert_string_equal(str_z(&a, r.text), rows[i].out);
        assert_int_equal(r.n, rows[i].n);
        assert_true(r.from <= r.to && r.to <= r.text.len);
    }
}

static void explains(void **state)
{
    static const struct {
        const char *text, *before, *after, *want, *hint;
    } rows[] = {
        { "abc", "", "x", "old_string is empty", "" },
        { "abc", "b", "b", "the same", "" },
        { "", "b", "c", "the file is empty", "" },
        { "a\nb\na\n", "a", "x", "found 2 times, in lines 1, 3", "replace_all" },
        { "1\n1\n1\n1\n1\n1\n1\n1\n1\n1\n1\n1\n", "1", "x",
          "lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ...", "replace_all" },
        { "int a;\nint b;\n", "     1\tint a;\n     2\tint b;\n", "x", "not found",
          "line numbers of Read" },
        { "if (x)\n\treturn;\n", "    return;", "x", "not found",
          "from line 2 on; in line 2 the file has 1 tab where old_string has 4 spaces" },
        { "a\nint  b = 1;\n", "int b = 1;", "x", "not found",
          "in line 2 the file has 2 spaces where old_string has 1 space" },
        { "f(a,\n  b);\n", "f(a, b);", "x", "not found",
          "in line 1 the file has 1 line end, 2 spaces where old_string has 1 space" },
        { "a\nb  \nc\n", "a\nb\nc\n", "x", "not found",
          "in line 2 the file has 2 spaces, 1 line end where old_string has 1 line end" },
        { "a\nb", "a\nb\n", "x", "not found",
          "in line 2 the file has nothing where old_string has 1 line end" },
        { "one\ntwo\n", "one\\ntwo", "x", "not found", "is in line 1: give line ends" },
        { "say(\"hi\");\n", "say(\\\"hi\\\");", "x", "not found", "is in line 1" },
        { "z\nprintf(\"a\\n\");\n", "printf(\"a\n\");", "x", "not found",
          "line 2 of the file has a backslash" },
        { "float x = 1.0f;\nfloat y = 2.0f;\n", "float y = 3.0f;", "x", "not found",
          "nearest is line 2: \"float y = 2.0f;\"; old_string has \"float y = 3.0f;\"" },
        { "aaa\nbbb bbb\nccc\n", "bbb bbb\nddd\n", "x", "not found", "line 2 is \"bbb bbb\", but" },
        { "abc\n", "zzzzzzzzzzz", "x", "not found", "nothing in the file comes near" },
        { "abc\n", "\n\n\n", "x", "not found", "" },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        own_arena a = { 0 };
        struct err err = { 0 };
        struct edited r = { 0 };
        struct edit e = { str_from(rows[i].before), str_from(rows[i].after), false };
        assert_int_equal(edit_apply(&a, str_from(rows[i].text), &e, &r, &err), ERR_USAGE);
        if (strstr(err.text, rows[i].want) == NULL || strstr(err.hint, rows[i].hint) == NULL)
            fail_msg("row %zu: '%s', '%s', wanted '%s', '%s'", i, err.text, err.hint, rows[i].want,
                     rows[i].hint);
        assert_int_equal(r.n, 0);
    }
}

/* A short piece many times by a long one. */
static void is_bounded(void **state)
{
    own_arena a = { 0 };
    struct err err = { 0 };
    struct edited r = { 0 };
    char *many = arena_new(&a, char, 100000), *large = arena_new(&a, char, 100000);
    (void)state;
    memset(many, 'a', 100000);
    memset(large, 'b', 100000);
    struct edit e = { S("a"), { large, 100000 }, true };
    assert_int_equal(edit_apply(&a, (struct str){ many, 100000 }, &e, &r, &err), ERR_LIMIT);
    assert_non_null(strstr(err.text, "would have more than"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(applies),
        cmocka_unit_test(explains),
        cmocka_unit_test(is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
