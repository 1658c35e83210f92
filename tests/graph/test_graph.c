/* graph_parse: what is right is read, what a foreign model could send wrong is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/json.h"
#include "graph/graph.h"

#define V0 "{\"id\":0,\"name\":\"x\",\"dtype\":\"f32\",\"shape\":[2,3],\"stride\":[3,1]}"
#define V1 "{\"id\":1,\"name\":\"y\",\"dtype\":\"f32\",\"shape\":[2,3],\"stride\":[3,1]}"
#define REST "\"inputs\":[0],\"params\":[],\"outputs\":[1]"

static const struct {
    const char *name, *text, *want; /* want NULL: it parses */
} rows[] = {
    { "one operator",
      "{\"values\":[" V0 "," V1
      "],\"nodes\":[{\"op\":\"aten.relu.default\",\"in\":[{\"v\":0}],\"kw\":{},\"out\":[1]}]," REST
      "}",
      NULL },
    { "an operand that is not there",
      "{\"values\":[" V0 "," V1
      "],\"nodes\":[{\"op\":\"aten.relu.default\",\"in\":[{\"v\":7}],\"kw\":{},\"out\":[1]}]," REST
      "}",
      "value 7 of 2" },
    { "a result that is not there",
      "{\"values\":[" V0 "," V1
      "],\"nodes\":[{\"op\":\"aten.relu.default\",\"in\":[{\"v\":0}],\"kw\":{},\"out\":[9]}]," REST
      "}",
      "result 9" },
    { "a result made twice",
      "{\"values\":[" V0 "," V1 "],\"nodes\":[{\"op\":\"a\",\"in\":[{\"v\":0}],\"kw\":{},\"out\":["
      "1]},{\"op\":\"b\",\"in\":[{\"v\":0}],\"kw\":{},\"out\":[1]}]," REST "}",
      "result 1" },
    { "an operand from later",
      "{\"values\":[" V0 "," V1
      "],\"nodes\":[{\"op\":\"a\",\"in\":[{\"v\":1}],\"kw\":{},\"out\":[1]}]," REST "}",
      "comes later" },
    { "an output that is not there",
      "{\"values\":[" V0 "],\"nodes\":[],\"inputs\":[0],\"params\":[],\"outputs\":[4]}",
      "output 0" },
    { "a negative dimension",
      "{\"values\":[{\"id\":0,\"name\":\"x\",\"dtype\":\"f32\",\"shape\":[-1],\"stride\":[1]}],"
      "\"nodes\":[],\"inputs\":[0],\"params\":[],\"outputs\":[0]}",
      "a dimension of -1" },
    { "nine dimensions",
      "{\"values\":[{\"id\":0,\"name\":\"x\",\"dtype\":\"f32\",\"shape\":[1,1,1,1,1,1,1,1,1],"
      "\"stride\":[1,1,1,1,1,1,1,1,1]}],\"nodes\":[],\"inputs\":[0],\"params\":[],\"outputs\":[0]}",
      "9 dimensions" },
    { "no values", "{\"nodes\":[]}", "'values' is missing" },
};

static void parse(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        own_arena a = { 0 };
        own_json j = NULL;
        struct err err = { 0 };
        struct graph g;
        assert_int_equal(json_parse(str_from(rows[i].text), 1 << 20, &j, &err), OK);
        enum err_code code = graph_parse(&a, j, &g, &err);
        if (rows[i].want == NULL) {
            assert_int_equal(code, OK);
            assert_int_equal(g.value[0].source, GRAPH_FROM_INPUT);
            assert_int_equal(g.value[1].node, 0);
            assert_int_equal(g.value[1].uses, 1);
        } else if (code == OK || strstr(err.text, rows[i].want) == NULL) {
            fail_msg("%s: '%s'", rows[i].name, err.text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(parse) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
