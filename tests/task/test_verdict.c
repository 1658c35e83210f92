/* A verdict survives its JSON, and tells a person what matters first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "core/json.h"
#include "task/verdict.h"

static struct verdict sample(void)
{
    struct verdict v = {
        .id = "01JD0000000000000000000000",
        .task_hash = "0123456789abcdef0123456789abcdef",
        .task_name = "row_softmax",
        .candidate_hash = "fedcba9876543210fedcba9876543210",
        .author = "playbook",
        .target = TARGET_CPU,
        .status = VERDICT_PASS,
        .preset = PRESET_KERNELBENCH,
        .tol_used = 1e-4,
        .precision = PREC_TF32,
        .rel_l2 = 2.5e-6,
        .check = { { .family = "ties", .output = "out", .n = 4096, .first = -1 } },
        .n_checks = 1,
        .time_us = { [ARM_CANDIDATE] = { 1500, 1490, 1510, 30, 1 },
                     [ARM_EAGER] = { 6000, 5900, 6100, 30, 0 },
                     [ARM_BEST] = { 3000, 2900, 3100, 30, 0 } },
        .best_name = "graph(eager)",
        .span_us = 1400,
        .setup_ms = 2.5,
        .keep_bytes = INT64_C(5) << 32,
        .vs_eager = { 4, 3.9, 4.1 },
        .vs_best = { 2, 1.9, 2.1 },
        .reward_milestone = 2,
        .floor_bytes = 33554432,
        .floor_flops = 1e9,
        .floor_us = 1000,
        .floor_share = 0.667,
        .device_uuid = "cpu-1",
        .device_name = "A processor",
        .torch_version = "2.11",
        .box_rung = 1,
        .box_limits_by = "cgroup",
        .cost_build_ms = 900,
    };
    verdict_note(&v, "%d windows were void", 1);
    return v;
}

static void round_trip(void **state)
{
    (void)state;
    struct verdict v = sample(), back = { 0 };
    struct err err = { 0 };
    v.check[0].got = INFINITY, v.check[0].want = -INFINITY;
    own_json j = verdict_json(&v);
    own_mem char *text = json_dumps(j, 0);
    own_json again = NULL;
    assert_non_null(text);
    assert_int_equal(json_parse(str_from(text), 1 << 20, &again, &err), OK);
    assert_string_equal(verdict_from_json(again, &back, &err) == OK ? "" : err.text, "");
    own_json twice = verdict_json(&back);
    assert_true(json_equal(j, twice));
    assert_memory_equal(&v.time_us, &back.time_us, sizeof v.time_us);
    assert_true(isinf(back.check[0].got) && back.check[0].want < 0);
    assert_int_equal(back.keep_bytes, v.keep_bytes);
    assert_int_equal(back.preset, PRESET_KERNELBENCH);
}

/* Everything that reads verdicts relies on these places. */
static void shape(void **state)
{
    (void)state;
    static const char *const paths[] = {
        "schema",
        "id",
        "task.hash",
        "task.name",
        "status",
        "reason",
        "candidate.hash",
        "candidate.contract",
        "candidate.target",
        "tolerance.preset",
        "tolerance.used",
        "precision.class",
        "precision.rel_l2",
        "checks",
        "time_us.candidate",
        "time_us.eager",
        "time_us.compile",
        "time_us.best",
        "span_us",
        "setup.ms",
        "setup.bytes",
        "speedup.vs_eager",
        "speedup.vs_compile",
        "speedup.vs_best",
        "time_us.best.name",
        "reward.milestone",
        "reward.speedup",
        "floor.bytes",
        "floor.flops",
        "floor.us",
        "floor.share",
        "device.uuid",
        "device.name",
        "device.driver",
        "device.clocks",
        "device.throttle",
        "versions",
        "box.rung",
        "box.limits_by",
        "notes",
        "cost_ms.build",
        "cost_ms.start",
        "cost_ms.check",
        "cost_ms.time",
    };
    struct verdict v = sample();
    own_json j = verdict_json(&v);
    for (size_t i = 0; i < COUNT(paths); i++) {
        struct str rest = str_from(paths[i]), part;
        const json_t *at = j;
        while (str_cut(&rest, '.', &part))
            at = json_object_getn(at, part.ptr, part.len);
        if (at == NULL)
            fail_msg("no '%s'", paths[i]);
    }
    assert_true(json_is_null(json_object_get(json_object_get(j, "time_us"), "compile")));
}

static void broken_json(void **state)
{
    (void)state;
    static const struct {
        const char *section, *key;
        const char *value; /* NULL: removed */
        const char *error;
    } rows[] = {
        { NULL, "schema", "\"cuda-agent/verdict/2\"", "schema 'cuda-agent/verdict/2'" },
        { NULL, "status", "\"fine\"", "'fine', which is not known" },
        { NULL, "status", NULL, "'status' is missing" },
        { NULL, "box", "[]", "box" },
        { "task", "hash", "\"0123456789abcdef0123456789abcdef0\"", "room for 32" },
        { "box", "rung", "4294967296", "out of range" },
        { "floor", "flops", "\"many\"", "is no number" },
        { "time_us", "eager", "{\"median\":1}", "eager: 'lo'" },
        { "time_us", "best", "{\"median\":1,\"lo\":1,\"hi\":1,\"windows\":1,\"void\":0,\"name\":7}",
          "'name' is not text" },
        { NULL, "checks", "[{}]", "check 0" },
        { NULL, "notes", "[7]", "note 0" },
    };
    struct verdict v = sample();
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct verdict back;
        struct err err = { 0 };
        own_json j = verdict_json(&v);
        json_t *into = rows[i].section ? json_object_get(j, rows[i].section) : j;
        json_object_del(into, rows[i].key);
        if (rows[i].value != NULL)
            json_object_set_new(into, rows[i].key,
                                json_loads(rows[i].value, JSON_DECODE_ANY, NULL));
        assert_int_not_equal(verdict_from_json(j, &back, &err), OK);
        if (strstr(err.text, rows[i].error) == NULL)
            fail_msg("'%s' does not say '%s'", err.text, rows[i].error);
    }
}

static void bytes_that_are_no_text(void **state)
{
    (void)state;
    static const struct {
        const char *bytes, *want;
    } rows[] = {
        { "plain", "plain" },
        { "caf\xc3\xa9", "caf\xc3\xa9" },
        { "caf\xe9!", "caf?!" },
        { "cut \xe2\x80", "cut ??" },
        { "surrogate \xed\xa0\x80", "surrogate ???" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct verdict v = sample();
        memcpy(v.reason, rows[i].bytes, strlen(rows[i].bytes) + 1);
        own_json j = verdict_json(&v);
        assert_string_equal(json_string_value(json_object_get(j, "reason")), rows[i].want);
    }
}

static void printed(void **state)
{
    (void)state;
    own_arena a = { 0 };
    struct verdict v = sample();
    v.status = VERDICT_WRONG;
    memcpy(v.reason, "out is wrong", 13);
    v.check[0] = (struct check){ .family = "ties",
                                 .output = "out",
                                 .misses = 3,
                                 .n = 4096,
                                 .first = 17,
                                 .got = 0.5,
                                 .want = 0.25,
                                 .max_err = 0.25 };
    struct buf b = { .arena = &a, .max = 1 << 16 };
    verdict_print(&v, &b);
    static const char *const said[] = {
        "row_softmax",
        "out on 'ties' inputs: 3 of 4096 elements off; first at [17]: got 0.5, want 0.25",
        "tf32",
        "candidate      1.500 ms  [1.490, 1.510]",
        "eager          6.000 ms  [5.900, 6.100]   4.00x [3.90, 4.10]",
        "compile     not measured",
        "2.00x [1.90, 2.10]   graph(eager)",
        "67% of it",
        "A processor",
        "rung 1, limits by cgroup",
    };
    assert_true(str_starts(str_from(b.ptr), S("wrong: out is wrong\n")));
    for (size_t i = 0; i < COUNT(said); i++)
        if (strstr(b.ptr, said[i]) == NULL)
            fail_msg("'%s' is not in\n%s", said[i], b.ptr);
}

static void notes_are_bounded(void **state)
{
    (void)state;
    static char letters[400];
    memset(letters, 'x', sizeof letters - 1);
    struct verdict v = { 0 };
    for (int i = 0; i < NOTES_MAX + 3; i++)
        verdict_note(&v, "%s", letters);
    assert_int_equal(v.n_notes, NOTES_MAX);
    assert_true(str_ends(str_from(v.note[0]), S("x...")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),  cmocka_unit_test(shape),
        cmocka_unit_test(broken_json), cmocka_unit_test(bytes_that_are_no_text),
        cmocka_unit_test(printed),     cmocka_unit_test(notes_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
