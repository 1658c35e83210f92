/* Index arithmetic: what folds, what stays, and that it means the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "playbook/affine.h"

static void folds(void **state)
{
    (void)state;
    own_arena a = { 0 };
    const struct affine *row = affine_var(&a, "row", 9), *c = affine_var(&a, "c", 63);
    const struct affine *x = affine_add(&a, affine_scale(&a, row, 64), c);
    /* row * 64 + c taken apart and put together again is itself */
    assert_string_equal(affine_text(&a, affine_div(&a, x, 64)), "row");
    assert_string_equal(affine_text(&a, affine_mod(&a, x, 64)), "c");
    /* an inner split that does not line up with the row stays a quotient of the column alone */
    assert_string_equal(affine_text(&a, affine_mod(&a, x, 16)), "c % 16");
    const struct affine *q = affine_div(&a, x, 16), *r = affine_mod(&a, x, 16);
    assert_true(affine_equal(affine_add(&a, affine_scale(&a, q, 16), r), x));
    assert_int_equal(affine_max(x), 639);
    assert_int_equal(affine_coefficient(x, "row"), 64);
    assert_int_equal(affine_coefficient(q, "c"), 0);
    assert_true(affine_uses(q, "c"));
    assert_true(affine_multiple(x, 32, "c", "k"));
    assert_false(affine_multiple(x, 48, "c", "k"));
    /* what cancels is gone */
    assert_string_equal(affine_text(&a, affine_add(&a, x, affine_scale(&a, c, -1))), "row * 64");
    /* a variable with one value is a number */
    assert_string_equal(affine_text(&a, affine_var(&a, "k", 0)), "0");
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(folds) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
