/* The worker's JSON is read as if it were hostile: each row is one way to be wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/json.h"
#include "task/task.h"

#define OUT                                                                                       \
    "\"out\":[{\"name\":\"out\",\"kind\":\"tensor\",\"dtype\":\"f32\",\"shape\":[2],\"stride\":[" \
    "1],\"alias\":-1,\"bytes\":8}]"
#define IN(v) "{\"in\":[" v "],\"param\":[]," OUT "}"
#define TENSOR(dtype, shape, stride, alias, bytes)                                 \
    "{\"name\":\"x\",\"kind\":\"tensor\",\"dtype\":\"" dtype "\",\"shape\":" shape \
    ",\"stride\":" stride ",\"alias\":" alias ",\"bytes\":" bytes "}"

static const struct {
    const char *name, *json;
    const char *error; /* part of the text; NULL: taken, then `line` is printed */
    const char *line;
} rows[] = {
    { "a plain tensor", IN(TENSOR("bf16", "[3, 4]", "[4, 1]", "-1", "24")), NULL,
      "in    x                        bf16 [3, 4]\n" },
    { "a broadcast stride of 0", IN(TENSOR("f32", "[1000, 4]", "[0, 1]", "-1", "16")), NULL,
      "in    x                        f32 [1000, 4]\n" },
    { "a scalar tensor", IN(TENSOR("i64", "[]", "[]", "-1", "8")), NULL,
      "in    x                        i64 []\n" },
    { "an empty tensor", IN(TENSOR("f32", "[0, 4]", "[4, 1]", "-1", "0")), NULL,
      "in    x                        f32 [0, 4]\n" },
    { "an int", IN("{\"name\":\"k\",\"kind\":\"int\",\"i\":-3}"), NULL,
      "in    k                        int -3\n" },
    { "a real that JSON cannot say", IN("{\"name\":\"k\",\"kind\":\"real\",\"r\":\"-inf\"}"), NULL,
      "in    k                        real -inf\n" },
    { "none", IN("{\"name\":\"mask\",\"kind\":\"none\"}"), NULL,
      "in    mask                     None\n" },
    { "no such dtype", IN(TENSOR("f31", "[2]", "[1]", "-1", "8")), "dtype 'f31'", NULL },
    { "a negative size", IN(TENSOR("f32", "[-2]", "[1]", "-1", "8")), "no size", NULL },
    { "a size as text", IN(TENSOR("f32", "[\"2\"]", "[1]", "-1", "8")), "no size", NULL },
    { "a negative stride", IN(TENSOR("f32", "[2]", "[-1]", "-1", "8")), "no size", NULL },
    { "rank and strides differ", IN(TENSOR("f32", "[2, 2]", "[1]", "-1", "16")),
      "1 entries, shape has 2", NULL },
    { "rank 9", IN(TENSOR("f32", "[1,1,1,1,1,1,1,1,1]", "[1]", "-1", "4")), "limit 8", NULL },
    { "a product that overflows",
      IN(TENSOR("f32", "[16000000000,16000000000]", "[0,0]", "-1", "4")), "more than", NULL },
    { "a span that overflows", IN(TENSOR("f32", "[3000000000]", "[16000000000]", "-1", "4")),
      "more than", NULL },
    { "bytes below the span", IN(TENSOR("f32", "[2]", "[4]", "-1", "8")), "span 20", NULL },
    { "bytes beyond any machine", IN(TENSOR("f32", "[2]", "[1]", "-1", "99999999999999999")),
      "span 8", NULL },
    { "alias of itself", IN(TENSOR("f32", "[2]", "[1]", "0", "8")), "earlier entry", NULL },
    { "alias before the list", IN(TENSOR("f32", "[2]", "[1]", "-2", "8")), "earlier entry", NULL },
    { "a flag of 2", IN("{\"name\":\"k\",\"kind\":\"flag\",\"i\":2}"), "neither 0 nor 1", NULL },
    { "no name", IN("{\"name\":\"\",\"kind\":\"none\"}"), "no name", NULL },
    { "a name with a line break", IN("{\"name\":\"a\\nb\",\"kind\":\"none\"}"), "control", NULL },
    { "a number for an entry", IN("7"), "no object", NULL },
    { "no outputs", "{\"in\":[],\"param\":[],\"out\":[]}", "no outputs", NULL },
    { "no list of parameters", "{\"in\":[]," OUT "}", "'param' is missing", NULL },
};

static void entries(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        own_arena a = { 0 };
        own_json j = NULL;
        struct err err = { 0 };
        struct signature s = { 0 };
        print_message("%s\n", rows[i].name);
        assert_int_equal(json_parse(str_from(rows[i].json), 1 << 16, &j, &err), OK);
        enum err_code code = signature_parse(&a, j, &s, &err);
        if (rows[i].error != NULL) {
            assert_int_not_equal(code, OK);
            if (strstr(err.text, rows[i].error) == NULL)
                fail_msg("'%s' does not say '%s'", err.text, rows[i].error);
            continue;
        }
        struct buf b = { .arena = &a, .max = 4096 };
        assert_string_equal(code == OK ? "" : err.text, "");
        signature_print(&s, &b);
        assert_memory_equal(b.ptr, rows[i].line, strlen(rows[i].line));
    }
}

static void too_many_values(void **state)
{
    (void)state;
    own_arena a = { 0 };
    struct err err = { 0 };
    struct signature s = { 0 };
    own_json j = json_pack("{s:[], s:[], s:[]}", "in", "param", "out");
    for (int i = 0; i <= VALUES_MAX; i++)
        json_array_append_new(json_object_get(j, "in"),
                              json_pack("{s:s, s:s}", "name", "x", "kind", "none"));
    assert_int_equal(signature_parse(&a, j, &s, &err), ERR_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(entries),
                                        cmocka_unit_test(too_many_values) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
