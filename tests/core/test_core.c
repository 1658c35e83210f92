/* The floor that everything stands on: each row is one promise of a header in core/. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>

#include "core/field.h"
#include "core/json.h"

static void says(const char *text, const char *want)
{
    if (strstr(text, want) == NULL)
        fail_msg("'%s' does not say '%s'", text, want);
}

/* ---- str ---- */

static void cut(void **state)
{
    static const struct {
        const char *text, *parts; /* each part in brackets */
    } rows[] = {
        { "", "" },        { "a", "[a]" },         { "a:b", "[a][b]" }, { "a:", "[a]" },
        { ":a", "[][a]" }, { "a::b", "[a][][b]" }, { ":", "[]" },       { "::", "[][]" },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        own_arena a = { 0 };
        struct buf b = { .arena = &a, .max = 64 };
        struct str rest = str_from(rows[i].text), part, all;
        struct err err = { 0 };
        while (str_cut(&rest, ':', &part))
            buf_addf(&b, "[%.*s]", STR_FMT(part));
        assert_int_equal(buf_done(&b, &all, &err), OK);
        assert_string_equal(all.ptr, rows[i].parts);
    }
}

static void slices(void **state)
{
    own_arena a = { 0 };
    (void)state;
    assert_true(str_eq(str_trim(S(" \t a b \n")), S("a b")));
    assert_true(str_eq(str_trim(S("  ")), S("")));
    assert_true(str_eq(str_drop(S("abc"), 9), S("")));
    assert_true(str_starts(S("abc"), S("")) && !str_starts(S("ab"), S("abc")));
    assert_true(str_ends(S("a.cu"), S(".cu")) && !str_ends(S("u"), S(".cu")));
    assert_true(str_eq(str_from(NULL), S("")));
    char text[] = "a\x1b[2J\x7f\r\xc2\x9b\xc3\xa9\n\t";
    str_plain(text);
    assert_string_equal(text, "a [2J    \xc3\xa9\n\t");
    assert_string_equal(str_z(&a, str_drop(S("abc"), 1)), "bc");
    assert_string_equal(arena_fmt(&a, "%s-%d", "x", 7), "x-7");
}

static void numbers(void **state)
{
    static const struct {
        const char *text;
        int64_t value;
        const char *error;
    } whole[] = {
        { "0", 0, NULL },
        { "-7", -7, NULL },
        { "007", 7, NULL },
        { "9223372036854775807", INT64_MAX, NULL },
        { "-9223372036854775808", INT64_MIN, NULL },
        { "9223372036854775808", 0, "out of range" },
        { "", 0, "not a whole number" },
        { "-", 0, "not a whole number" },
        { "+1", 0, "not a whole number" },
        { " 1", 0, "not a whole number" },
        { "1x", 0, "not a whole number" },
        { "0x10", 0, "not a whole number" },
        { "1.0", 0, "not a whole number" },
    };
    static const struct {
        const char *text, *error;
    } real[] = {
        { "1e-4", NULL },          { "-0.5", NULL },          { "", "not a number" },
        { "nan", "not a number" }, { "inf", "not a number" }, { "1e999", "not a number" },
        { "1,5", "not a number" }, { "2", "not between" },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(whole); i++) {
        struct err err = { 0 };
        int64_t v = 5;
        enum err_code code = str_int(str_from(whole[i].text), INT64_MIN, INT64_MAX, &v, &err);
        assert_int_equal(code == OK, whole[i].error == NULL);
        assert_true(v == (code == OK ? whole[i].value : 5)); /* written on OK only */
        says(err.text, whole[i].error ? whole[i].error : "");
    }
    for (size_t i = 0; i < COUNT(real); i++) {
        struct err err = { 0 };
        double v = 5;
        enum err_code code = str_real(str_from(real[i].text), -1, 1, &v, &err);
        assert_int_equal(code == OK, real[i].error == NULL);
        assert_true((v != 5) == (code == OK));
        says(err.text, real[i].error ? real[i].error : "");
    }
    struct err err = { 0 };
    int64_t v = 0;
    assert_int_equal(str_int(S("11"), 1, 10, &v, &err), ERR_USAGE);
    says(err.text, "11 is not between 1 and 10");
}

/* ---- buf ---- */

static void ceiling(void **state)
{
    own_arena a = { 0 };
    struct err err = { 0 };
    struct str s = S("untouched");
    (void)state;
    struct buf exact = { .arena = &a, .max = 5 };
    buf_addz(&exact, "ab");
    buf_addf(&exact, "%d", 345);
    assert_int_equal(buf_done(&exact, &s, &err), OK);
    assert_string_equal(s.ptr, "ab345");

    struct buf over = { .arena = &a, .max = 5 };
    buf_addz(&over, "abcd");
    buf_addf(&over, "%d", 56);
    buf_addz(&over, "7"); /* would fit: but a text with a hole in it is no text */
    s = S("untouched");
    assert_int_equal(buf_done(&over, &s, &err), ERR_LIMIT);
    says(err.text, "more than 5 bytes");
    assert_string_equal(s.ptr, "untouched");
    assert_string_equal(over.ptr, "abcd");

    struct buf none = { .arena = &a, .max = 0 };
    buf_addz(&none, "");
    assert_int_equal(buf_done(&none, &s, &err), OK);
    assert_string_equal(s.ptr, "");

    struct buf big = { .arena = &a, .max = 1 << 20 };
    for (int i = 0; i < 100000; i++)
        buf_addf(&big, "%d", i % 10);
    assert_int_equal(buf_done(&big, &s, &err), OK);
    assert_int_equal(s.len, 100000);
    assert_int_equal(s.ptr[99999], '9');
}

/* ---- arena ---- */

static void rewinding(void **state)
{
    own_arena a = { 0 };
    (void)state;
    char *kept = arena_new(&a, char, 100);
    memset(kept, 'k', 100);
    struct arena_mark m = arena_mark(&a);
    size_t used = a.used;
    char *first = arena_new(&a, char, 64);
    memset(first, 'x', 64);
    for (int i = 0; i < 50; i++)
        arena_new(&a, double, 10000); /* many blocks */
    arena_rewind(&a, m);
    assert_int_equal(a.used, used);
    char *again = arena_new(&a, char, 64);
    assert_ptr_equal(again, first);
    for (int i = 0; i < 64; i++)
        assert_int_equal(again[i], 0); /* zeroed again */
    for (int i = 0; i < 100; i++)
        assert_int_equal(kept[i], 'k');
    assert_int_equal((uintptr_t)arena_alloc(&a, 1, 3) % 16, 0);
    assert_int_equal((uintptr_t)arena_alloc(&a, 1, 1) % 16, 0);
    assert_ptr_not_equal(arena_alloc(&a, 0, 8), NULL);
    arena_rewind(&a, (struct arena_mark){ 0 });
    assert_int_equal(a.used, 0);
}

/* ---- err ---- */

static void within(void **state)
{
    struct err e = { 0 };
    (void)state;
    err_raise(&e, ERR_LIMIT, "%s", "too big");
    err_hint(&e, "make it smaller");
    assert_int_equal(err_within(&e, "file %d", 3), ERR_LIMIT);
    assert_int_equal(err_within(&e, "run"), ERR_LIMIT);
    assert_string_equal(e.text, "run: file 3: too big");
    assert_string_equal(e.hint, "make it smaller");
    assert_string_equal(err_name(e.code), "limit");
    assert_int_equal(err_exit_status(e.code), 6);
    assert_int_equal(err_exit_status(OK), 0);
    errno = ENOENT;
    err_sys(&e, "open '%s'", "/x");
    assert_string_equal(e.text, "open '/x': No such file or directory");
    assert_string_equal(e.hint, ""); /* of the error before */
    assert_int_equal(e.sys, ENOENT);
}

/* Context goes in front, so what is cut is the far end, and the cut shows. */
static void within_cut(void **state)
{
    char longest[3 * ERR_TEXT_MAX];
    struct err e = { 0 };
    (void)state;
    memset(longest, 'z', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    err_raise(&e, ERR_FORMAT, "%s", longest);
    assert_int_equal(strlen(e.text), ERR_TEXT_MAX - 1);
    assert_string_equal(e.text + ERR_TEXT_MAX - 4, "...");
    err_within(&e, "context");
    assert_int_equal(strlen(e.text), ERR_TEXT_MAX - 1);
    assert_memory_equal(e.text, "context: zzz", 12);
    assert_string_equal(e.text + ERR_TEXT_MAX - 4, "...");
    err_within(&e, "%s", longest);
    assert_string_equal(e.text + ERR_TEXT_MAX - 4, "...");
    err_hint(&e, "%s", longest);
    assert_int_equal(strlen(e.hint), ERR_HINT_MAX - 1);
    assert_string_equal(e.hint + ERR_HINT_MAX - 4, "...");
}

/* ---- field and args ---- */

struct wanted {
    bool flag;
    int64_t threads;
    double bound;
    struct str name;
    int target;
};

static const char *const targets[] = { "cuda", "cpu", NULL };

static size_t fields_of(struct wanted *w, struct field f[5])
{
    const struct field all[] = {
        FIELD_FLAG("quick", &w->flag, "a short look"),
        FIELD_INT("threads", &w->threads, 1, 64, "CPU threads"),
        FIELD_REAL("time_limit", &w->bound, 0.5, 10, "seconds"),
        FIELD_TEXT("name", &w->name, "a name"),
        FIELD_CHOICE("target", &w->target, targets, "where it runs"),
    };
    memcpy(f, all, sizeof all);
    return COUNT(all);
}

static const struct {
    const char *line[6]; /* the words of a command line */
    const char *error;   /* NULL: taken */
    const char *hint;
    const char *operands; /* what is left, joined by ',' */
    struct wanted want;
} rows[] = {
#define DEFAULTS false, 4, 1, { "x", 1 }, 0
    { { "a", "b" }, NULL, "", "a,b", { DEFAULTS } },
    { { "a", "--quick", "b" }, NULL, "", "a,b", { true, 4, 1, { "x", 1 }, 0 } },
    { { "--quick=no" }, NULL, "", "", { DEFAULTS } },
    { { "--no-quick" }, NULL, "", "", { DEFAULTS } },
    { { "--threads", "64", "a" }, NULL, "", "a", { false, 64, 1, { "x", 1 }, 0 } },
    { { "--time-limit=2.5" }, NULL, "", "", { false, 4, 2.5, { "x", 1 }, 0 } },
    { { "--time_limit", "2.5" }, NULL, "", "", { false, 4, 2.5, { "x", 1 }, 0 } },
    { { "--name=" }, NULL, "", "", { false, 4, 1, { "", 0 }, 0 } },
    { { "--name", "a=b" }, NULL, "", "", { false, 4, 1, { "a=b", 3 }, 0 } },
    { { "--target", "cpu" }, NULL, "", "", { false, 4, 1, { "x", 1 }, 1 } },
    { { "--", "--quick", "--nope" }, NULL, "", "--quick,--nope", { DEFAULTS } },
    { { "-" }, NULL, "", "-", { DEFAULTS } },
    { { "--nope" }, "unknown option '--nope'", "--help", "", { DEFAULTS } },
    { { "--no-threads" }, "unknown option '--no-threads'", "--help", "", { DEFAULTS } },
    { { "--no-quick=yes" }, "unknown option '--no-quick'", "--help", "", { DEFAULTS } },
    { { "--=3" }, "unknown option '--'", "--help", "", { DEFAULTS } },
    { { "--threads" }, "--threads wants a value: CPU threads", "", "", { DEFAULTS } },
    { { "--threads", "--quick" }, "threads: '--quick' is not a whole", "", "", { DEFAULTS } },
    { { "--threads=65" }, "threads: 65 is not between 1 and 64", "", "", { DEFAULTS } },
    { { "--threads=0" }, "threads: 0 is not between 1 and 64", "", "", { DEFAULTS } },
    { { "--time-limit=0.4" }, "time_limit: 0.4 is not between 0.5 and 10", "", "", { DEFAULTS } },
    { { "--quick=maybe" }, "quick: 'maybe' is not true or false", "", "", { DEFAULTS } },
    { { "--target=tpu" }, "target: 'tpu' is none of: cuda, cpu", "", "", { DEFAULTS } },
    { { "--quick", "--no-quick" }, "--no-quick is given twice", "", "", { DEFAULTS } },
    { { "--time-limit=1", "--time_limit=1" }, "--time_limit is given", "", "", { DEFAULTS } },
    { { "--threads=3", "--threads=4" }, "--threads is given twice", "", "", { DEFAULTS } },
};

static void options(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        own_arena a = { 0 };
        struct wanted w = { DEFAULTS };
        struct field f[5];
        struct err err = { 0 };
        char *v[6];
        struct args args = { 0, v };
        while (args.n < 6 && rows[i].line[args.n] != NULL) {
            v[args.n] = (char *)(uintptr_t)rows[i].line[args.n];
            args.n++;
        }
        print_message("%s ...\n", v[0]);
        enum err_code code = args_options(&args, f, fields_of(&w, f), &err);
        if (rows[i].error != NULL) {
            assert_int_equal(code, ERR_USAGE);
            says(err.text, rows[i].error);
            says(err.hint, rows[i].hint);
            continue;
        }
        assert_string_equal(code == OK ? "" : err.text, "");
        const char *left = "";
        for (int k = 0; k < args.n; k++)
            left = arena_fmt(&a, "%s%s%s", left, k ? "," : "", args.v[k]);
        assert_string_equal(left, rows[i].operands);
        const struct wanted *want = &rows[i].want;
        assert_true(w.flag == want->flag && w.threads == want->threads && w.bound == want->bound);
        assert_true(w.target == want->target && str_eq(w.name, want->name));
    }
}

/* ---- json ---- */

static void getters(void **state)
{
    own_json j = NULL;
    struct err err = { 0 };
    struct str text;
    int64_t i = 0;
    double r = 0;
    bool flag = false;
    json_t *list = NULL, *map = NULL;
    (void)state;
    assert_int_equal(json_parse(S("{\"t\":\"a\",\"i\":3,\"r\":1.5,\"f\":true,\"l\":[1],\"m\":{}}"),
                                100, &j, &err),
                     OK);
    assert_int_equal(json_get_text(j, "t", &text, &err), OK);
    assert_true(str_eq(text, S("a")));
    assert_int_equal(json_get_int(j, "i", &i, &err), OK);
    assert_int_equal(json_get_real(j, "i", &r, &err), OK);
    assert_true(r == 3 && i == 3);
    assert_int_equal(json_get_real(j, "r", &r, &err), OK);
    assert_int_equal(json_get_flag(j, "f", &flag, &err), OK);
    assert_int_equal(json_get_list(j, "l", &list, &err), OK);
    assert_int_equal(json_get_map(j, "m", &map, &err), OK);
    assert_true(flag && json_array_size(list) == 1 && json_object_size(map) == 0);

    assert_int_equal(json_get_int(j, "r", &i, &err), ERR_FORMAT);
    says(err.text, "'r' is not a whole number");
    assert_int_equal(json_get_text(j, "gone", &text, &err), ERR_FORMAT);
    says(err.text, "'gone' is missing: wanted text");
    assert_int_equal(json_get_flag(j, "i", &flag, &err), ERR_FORMAT);
    assert_int_equal(json_get_list(j, "m", &list, &err), ERR_FORMAT);
    assert_int_equal(json_get_map(j, "l", &map, &err), ERR_FORMAT);
    assert_int_equal(json_get_real(j, "t", &r, &err), ERR_FORMAT);
    assert_int_equal(json_get_int(list, "i", &i, &err), ERR_FORMAT); /* of no object */
}

static void json_hostile(void **state)
{
    static const struct {
        const char *text;
        size_t max;
        enum err_code code;
    } rows_json[] = {
        { "{\"a\":1,\"a\":2}", 100, ERR_FORMAT },
        { "{} {}", 100, ERR_FORMAT },
        { "", 100, ERR_FORMAT },
        { "{\"a\":1}", 6, ERR_LIMIT },
        { "{\"a\":NaN}", 100, ERR_FORMAT },
        { "{\"a\":\"\xff\"}", 100, ERR_FORMAT },
        { "{\"a\":1e999}", 100, ERR_FORMAT },
        { "{\"a\":\"\\u0000\"}", 100, ERR_FORMAT },
        { "[1", 100, ERR_FORMAT },
        { "{\"a\":1}", 7, OK },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows_json); i++) {
        own_json j = NULL;
        struct err err = { 0 };
        assert_int_equal(json_parse(str_from(rows_json[i].text), rows_json[i].max, &j, &err),
                         rows_json[i].code);
        assert_int_equal(j != NULL, rows_json[i].code == OK);
    }
    /* Nesting is bounded by the parser, not by our stack. */
    own_arena a = { 0 };
    char *deep = arena_new(&a, char, 200001);
    memset(deep, '[', 200000);
    own_json j = NULL;
    struct err err = { 0 };
    assert_int_equal(json_parse(str_from(deep), 1 << 20, &j, &err), ERR_FORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cut),          cmocka_unit_test(slices),    cmocka_unit_test(numbers),
        cmocka_unit_test(ceiling),      cmocka_unit_test(rewinding), cmocka_unit_test(within),
        cmocka_unit_test(within_cut),   cmocka_unit_test(options),   cmocka_unit_test(getters),
        cmocka_unit_test(json_hostile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
