/* A request's bytes are jansson's own, for any JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "core/json.h"
#include "llm/dump.h"

static void same(const json_t *j)
{
    own_mem char *want = json_dumps(j, JSON_COMPACT | JSON_ENCODE_ANY);
    own_mem char *got = json_bytes(j);
    assert_string_equal(got, want);
}

static void by_hand(void **state)
{
    static const char *const rows[] = {
        "{}",
        "[]",
        "null",
        "[true,false,null,0,-1,1.5,1e300,123456789012345678]",
        "{\"a\":{\"b\":[[],{}]},\"\":\"\"}",
        "\"\\u0000\\u0001\\b\\f\\n\\r\\t\\\"\\\\/\\u001f\\u007f\\u00e9\\u20ac\\ud83d\\ude00\"",
        "{\"k\\n\\\"ey\":\"\\\"\"}",
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        own_json j = json_loads(rows[i], JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        assert_non_null(j);
        same(j);
    }
}

static uint64_t seed = 1;

static uint64_t draw(uint64_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % below;
}

static json_t *random_json(int depth)
{
    char text[24];
    size_t n = draw(sizeof text);
    for (size_t i = 0; i < n; i++)
        text[i] = (char)draw(128);
    uint64_t kind = draw(depth > 3 ? 3 : 5);
    if (kind == 0)
        return json_integer((json_int_t)draw(1000) - 500);
    if (kind <= 2)
        return kind == 1 ? json_real((double)draw(1000) / 7) : json_stringn(text, n);
    json_t *j = kind == 3 ? json_array() : json_object();
    for (uint64_t i = draw(5); i > 0; i--) {
        if (kind == 3) {
            json_array_append_new(j, random_json(depth + 1));
            continue;
        }
        char key[3] = { (char)(1 + draw(127)), (char)(1 + draw(127)), '\0' };
        json_object_set_new(j, key, random_json(depth + 1));
    }
    return j;
}

static void drawn(void **state)
{
    (void)state;
    for (int i = 0; i < 5000; i++) {
        own_json j = random_json(0);
        assert_non_null(j);
        same(j);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(by_hand), cmocka_unit_test(drawn) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
