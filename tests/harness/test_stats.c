/* What the medians and intervals allow us to pay, on samples whose answer is known by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/err.h"
#include "harness/stats.h"

static void same(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9))
        fail_msg("%.12g, wanted %.12g", got, want);
}

static struct samples samples_of(const double *v, int n)
{
    struct samples s = { 0 };
    for (int i = 0; i < n; i++)
        samples_add(&s, v[i]);
    return s;
}

/* n, n-1, ..., 1: the value at rank k is k + 1, and the order of arrival is not that of rank. */
static struct samples falling(int n)
{
    struct samples s = { 0 };
    for (int i = n; i > 0; i--)
        samples_add(&s, i);
    return s;
}

/* The ranks are those of the usual table for a 95% interval of the median; below 6 windows no
 * pair of ranks reaches it and the interval is the whole range. */
static void test_time(void **state)
{
    static const struct {
        int n;
        double median, lo, hi;
    } rows[] = {
        { 0, 0, 0, 0 },       { 1, 1, 1, 1 },        { 2, 1.5, 1, 2 },         { 5, 3, 1, 5 },
        { 6, 3.5, 1, 6 },     { 9, 5, 2, 8 },        { 16, 8.5, 4, 13 },       { 25, 13, 8, 18 },
        { 64, 32.5, 24, 41 }, { 100, 50.5, 40, 61 }, { 400, 200.5, 180, 221 },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct samples s = falling(rows[i].n);
        struct arm_time t = stats_time(&s);
        print_message("%d windows\n", rows[i].n);
        assert_int_equal(t.windows, rows[i].n);
        same(t.median, rows[i].median);
        same(t.lo, rows[i].lo);
        same(t.hi, rows[i].hi);
        same(s.n > 0 ? s.v[0] : 0, rows[i].n); /* arrival order is kept */
    }
}

static void test_voids_and_ceiling(void **state)
{
    struct samples s = { .voids = 3 };
    (void)state;
    for (int i = 0; i < SAMPLES_MAX + 10; i++)
        samples_add(&s, i < SAMPLES_MAX ? 1 : 1000);
    struct arm_time t = stats_time(&s);
    assert_int_equal(t.windows, SAMPLES_MAX);
    assert_int_equal(t.void_windows, 3);
    same(t.hi, 1);
}

/* A machine that slows down to a third takes both sides along; the ratio does not move. */
static void test_paired_drift(void **state)
{
    struct samples base = { 0 }, fast = { 0 };
    (void)state;
    for (int i = 0; i < 40; i++) {
        double drift = 1 + 2 * i / 40.0;
        samples_add(&base, 30 * drift);
        samples_add(&fast, 20 * drift);
    }
    struct ratio r = stats_paired(&base, &fast);
    same(r.median, 1.5);
    same(r.lo, 1.5);
    same(r.hi, 1.5);
    struct arm_time b = stats_time(&base), c = stats_time(&fast);
    struct ratio apart = stats_apart(&b, &c);
    assert_true(apart.lo < 1.4 && apart.hi > 1.6); /* what pairing is for */
}

static void test_paired_uneven(void **state)
{
    const double base_v[] = { 10, 10, 10, 10 }, candidate_v[] = { 5, 0, 2 };
    struct samples base = samples_of(base_v, 4), candidate = samples_of(candidate_v, 3);
    struct samples none = { 0 };
    (void)state;
    struct ratio r = stats_paired(&base, &candidate);
    same(r.median, 3.5); /* 2 and 5: a time of 0 is no pair */
    same(r.lo, 2);
    same(r.hi, 5);
    r = stats_paired(&base, &none);
    assert_true(r.median == 0 && r.lo == 0 && r.hi == 0);
}

static void test_apart(void **state)
{
    const struct arm_time base = { 10, 8, 12, 9, 0 }, candidate = { 5, 4, 6, 9, 0 };
    const struct arm_time none = { 0 };
    (void)state;
    struct ratio r = stats_apart(&base, &candidate);
    same(r.median, 2);
    same(r.lo, 8.0 / 6);
    same(r.hi, 3);
    same(stats_apart(&none, &candidate).median, 0);
    same(stats_apart(&base, &none).median, 0);
    same(stats_width(&base), 0.4);
    same(stats_width(&none), 1);
}

/* The published border is 5% less time: the candidate may take 0.95 of the baseline. */
static void test_touches(void **state)
{
    const double border = 1 / 0.95;
    const struct {
        const char *name;
        struct ratio r;
        bool want;
    } rows[] = {
        { "nothing measured", { 0, 0, 0 }, false },
        { "far above", { 2, 1.9, 2.1 }, false },
        { "far below", { 0.3, 0.2, 0.4 }, false },
        { "around it", { border, border - 0.01, border + 0.01 }, true },
        { "above, within the drift", { 1.56, border * 1.45, 1.6 }, true },
        { "above, beyond the drift", { 1.65, border * 1.55, 1.7 }, false },
        { "below, within the drift", { 0.5, 0.45, border * 0.69 }, true },
        { "below, beyond the drift", { 0.4, 0.35, border * 0.64 }, false },
        { "wide over the border", { 1.5, 0.5, 3 }, true },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        print_message("%s\n", rows[i].name);
        assert_int_equal(stats_touches(&rows[i].r, border, 1.5), rows[i].want);
    }
    const struct ratio fast = { 3, 2.9, 3.1 }; /* plain on a machine that keeps its speed */
    assert_false(stats_touches(&fast, border, 1.5));
    assert_true(stats_touches(&fast, border, 4));
}

/* The most windows on the wrong side that a two-sided sign test at 0.001 allows, and one more. */
static void test_clear(void **state)
{
    static const struct {
        int n, wrong;
        bool want;
    } rows[] = { { 32, 6, true },    { 32, 7, false }, { 32, 16, false }, { 192, 72, true },
                 { 192, 73, false }, { 8, 0, false },  { 11, 0, true },   { 0, 0, false } };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        for (int above = 0; above < 2; above++) { /* either side */
            struct samples base = { 0 }, mine = { 0 };
            for (int k = 0; k < rows[i].n; k++) {
                samples_add(&base, (k < rows[i].wrong) == above ? 1 : 3);
                samples_add(&mine, 1);
            }
            print_message("%d of %d\n", rows[i].wrong, rows[i].n);
            assert_int_equal(stats_clear(&base, &mine, 2), rows[i].want);
        }
    }
}

/* Within 2% what was measured beside the candidate stands; past it the quiet time does. */
static void test_quiet(void **state)
{
    static const struct {
        double beside, quiet;
        bool changed;
        double median;
    } rows[] = { { 100, 100, false, 2 },
                 { 102, 100, false, 2 },
                 { 98, 100, false, 2 },
                 { 125, 100, true, 1.6 },
                 { 125, 0, false, 2 } };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct ratio r = { 2, 1.5, 2.5 };
        assert_int_equal(stats_quiet(&r, rows[i].beside, rows[i].quiet), rows[i].changed);
        same(r.median, rows[i].median);
        same(r.lo / r.median, 0.75);
        same(r.hi / r.median, 1.25);
    }
}

static void test_help(void **state)
{
    (void)state;
    assert_false(stats_help(15, 10, 8));  /* launches that overlap */
    assert_false(stats_help(105, 80, 8)); /* weights that the first of many fetches */
    assert_true(stats_help(231, 5, 8));   /* one launch for all */
    assert_true(stats_help(1000, 600, 8));
    assert_false(stats_help(1000, 1000, 8));
    assert_true(stats_help(1656, 1002, 200)); /* cpu: one pass over the weights for three calls */
    assert_false(stats_help(700, 420, 200));  /* threads to wake */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quiet),        cmocka_unit_test(test_help),
        cmocka_unit_test(test_time),         cmocka_unit_test(test_voids_and_ceiling),
        cmocka_unit_test(test_paired_drift), cmocka_unit_test(test_paired_uneven),
        cmocka_unit_test(test_apart),        cmocka_unit_test(test_touches),
        cmocka_unit_test(test_clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
