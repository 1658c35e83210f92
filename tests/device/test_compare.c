/* The element rule of docs/exam.md on values whose answer is known by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "cuda_agent.h"
#include "device/compare.h"

#define N 10000 /* more than two chunks of the loop */

static const struct compare_rule rule = { .s = 1, .mean = 0, .tol = 0.01, .published = 0.02 };

static void elements(void **state)
{
    static const struct {
        const char *name;
        double a, r;
        bool miss;
    } rows[] = {
        { "equal", 3, 3, false },
        { "inside: 0.01 (1 + 3)", 3.0399, 3, false },
        { "outside", 3.0401, 3, true },
        { "below, outside", 2.9599, 3, true },
        { "the bound follows |r|", -100.9, -100, false },
        { "small r leans on s", 0.0099, 0, false },
        { "NaN for a number", NAN, 3, true },
        { "infinity for a number", INFINITY, 3, true },
        { "NaN where it must be", NAN, NAN, false },
        { "a number for NaN", 0, NAN, true },
        { "infinity where it must be", INFINITY, INFINITY, false },
        { "the other infinity", -INFINITY, INFINITY, true },
        { "a large number for infinity", 1e308, INFINITY, true },
        { "minus zero", -0.0, 0, false },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct compare_result c = { 0 };
        print_message("%s\n", rows[i].name);
        assert_int_equal(compare_floats(&rows[i].a, NULL, CA_F64, &rows[i].r, 1, &rule, &c), 0);
        assert_int_equal(c.misses, rows[i].miss);
        assert_int_equal(c.first, rows[i].miss ? 0 : -1);
        assert_int_equal(c.far, 0);
        assert_true(rows[i].miss ? c.max_err > rule.tol : c.max_err <= rule.tol);
    }
}

static void slices(void **state)
{
    /* 2 x 3 x 2: slices along the middle; the second is a hundred times smaller. */
    const double r[] = { 5, -5, 0.05, -0.05, 1, 1, 4, -4, 0.04, -0.04, 1, 1 };
    const double s[] = { 4.5, 0.045, 1 }, tol[] = { 0.01, 0.01, INFINITY };
    double a[COUNT(r)], worst[3], diff[3];
    unsigned char aside[COUNT(r)] = { 0 };
    struct slice_rule by = { 3, 2, s, tol, NULL, worst, diff };
    struct compare_result c;
    (void)state;
    memcpy(a, r, sizeof a);
    a[4] = 9;     /* a slice that is not held */
    a[9] = -0.03; /* far too much for its slice */
    assert_int_equal(compare_slices(a, CA_F64, r, COUNT(r), &by, &c), 0);
    assert_int_equal(c.misses, 1);
    assert_int_equal(c.first, 9);
    assert_true(worst[0] == 0 && fabs(worst[1] - 0.01 / 0.085) < 1e-12 && worst[2] == 4);
    assert_true(diff[0] == 0 && fabs(diff[1] - 1e-4) < 1e-12 && diff[2] == 64);
    aside[9] = 1;
    by.aside = aside;
    assert_int_equal(compare_slices(a, CA_F64, r, COUNT(r), &by, &c), 0);
    assert_true(c.misses == 0 && c.first == -1 && worst[1] == 0);
    a[0] = NAN;
    assert_int_equal(compare_slices(a, CA_F64, r, COUNT(r), &by, &c), 0);
    assert_true(c.misses == 1 && c.first == 0 && isinf(worst[0]));
    assert_int_equal(compare_slices(a, CA_I32, r, COUNT(r), &by, &c), -1);
}

/* The published check stands beside ours: against eager, with its own bound. */
static void against_eager(void **state)
{
    const double a[] = { 1.03, 1.05, NAN, INFINITY, 5, 2 },
                 r[] = { 1.03, 1.05, NAN, INFINITY, 5, 2 };
    const double e[] = { 1, 1, NAN, INFINITY, NAN, 2 };
    struct compare_result c = { 0 };
    (void)state;
    assert_int_equal(compare_floats(a, e, CA_F64, r, 6, &rule, &c), 0);
    assert_int_equal(c.misses, 0);
    assert_int_equal(c.far, 2); /* 0.05 > 0.02 * 2, and 5 for NaN */
    assert_int_equal(c.first_far, 1);
}

static void sums(void **state)
{
    static double a[N], r[N];
    struct compare_rule centred = rule;
    struct compare_result c = { 0 };
    (void)state;
    centred.mean = 2;
    for (int i = 0; i < N; i++) {
        r[i] = i % 2 ? 3 : 1;
        a[i] = r[i] + 0.001;
    }
    r[17] = a[17] = INFINITY; /* is in no sum */
    a[9000] = 50;
    a[4100] = 50;
    assert_int_equal(compare_floats(a, NULL, CA_F64, r, N, &centred, &c), 0);
    assert_int_equal(c.misses, 2);
    assert_int_equal(c.first, 4100); /* whichever thread came first */
    assert_true(fabs(c.centered_sq - (N - 1)) < 1e-6);
    assert_true(fabs(c.diff_sq - (2 * 49.0 * 49 + (N - 3) * 1e-6)) < 1e-6);
    assert_true(fabs(c.max_err - 49.0 / 2) < 1e-9);
    assert_int_equal(compare_floats(a, NULL, CA_F64, r, 0, &centred, &c), 0);
    assert_true(c.misses == 0 && c.first == -1 && c.max_err == 0);
}

static void narrow_types(void **state)
{
    static const struct {
        int dtype;
        uint32_t bits;
        double value;
    } rows[] = {
        { CA_F32, 0x3fc00000, 1.5 },
        { CA_F32, 0x80000001, -0x1p-149 },
        { CA_F32, 0x7f800000, INFINITY },
        { CA_F32, 0x7fc00000, NAN },
        { CA_F16, 0x3e00, 1.5 },
        { CA_F16, 0x7bff, 65504 },
        { CA_F16, 0x0001, 0x1p-24 },
        { CA_F16, 0x8400, -0x1p-14 },
        { CA_F16, 0xfc00, -INFINITY },
        { CA_F16, 0x7e00, NAN },
        { CA_F16, 0x0000, 0 },
        { CA_BF16, 0x3fc0, 1.5 },
        { CA_BF16, 0xc2f7, -123.5 },
        { CA_BF16, 0x0001, 0x1p-133 },
        { CA_BF16, 0x7f80, INFINITY },
        { CA_BF16, 0x7fc0, NAN },
    };
    const struct compare_rule exact = { .s = 0, .tol = 0 };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint16_t half = (uint16_t)rows[i].bits;
        const void *a = rows[i].dtype == CA_F32 ? (const void *)&rows[i].bits : &half;
        struct compare_result c = { 0 };
        assert_int_equal(compare_floats(a, NULL, rows[i].dtype, &rows[i].value, 1, &exact, &c), 0);
        if (c.misses != 0)
            fail_msg("bits %x of dtype %d are not %g", rows[i].bits, rows[i].dtype, rows[i].value);
    }
    struct compare_result c = { 0 };
    double r = 0;
    assert_int_equal(compare_floats(&r, NULL, CA_I32, &r, 1, &exact, &c), -1);
    assert_int_equal(compare_floats(&r, NULL, -1, &r, 1, &exact, &c), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements), cmocka_unit_test(slices),       cmocka_unit_test(against_eager),
        cmocka_unit_test(sums),     cmocka_unit_test(narrow_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
