/* The milestone table: what is paid, on lower bounds, under both rules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "reward/reward.h"

/* 1/0.95 = 1.0526...: 1.052 is below the border, 1.053 above. */
static const struct {
    const char *name;
    enum verdict_status status;
    double eager, compile, best; /* lower bounds; the medians are 10 */
    int paper, against_best;
} rows[] = {
    { "faster than all", VERDICT_PASS, 1.053, 1.053, 1.053, 3, 3 },
    { "best-of-PyTorch is not beaten", VERDICT_PASS, 2, 2, 1.052, 3, 2 },
    { "compile is not beaten", VERDICT_PASS, 2, 1.052, 1.053, 2, 2 },
    { "eager is not beaten by enough", VERDICT_PASS, 1.052, 2, 2, 1, 1 },
    { "slower", VERDICT_PASS, 0.5, 0.5, 0.5, 1, 1 },
    { "compile was not measured", VERDICT_PASS, 2, 0, 2, 2, 2 },
    { "nothing was measured", VERDICT_PASS, 0, 0, 0, 1, 1 },
    { "a wrong answer, however fast", VERDICT_WRONG, 9, 9, 9, -1, -1 },
    { "does not compile", VERDICT_COMPILE_ERROR, 0, 0, 0, -1, -1 },
    { "crashed", VERDICT_CRASHED, 0, 0, 0, -1, -1 },
    { "timeout", VERDICT_TIMEOUT, 0, 0, 0, -1, -1 },
    { "setup timeout", VERDICT_SETUP_TIMEOUT, 0, 0, 0, -1, -1 },
    { "forbidden", VERDICT_FORBIDDEN, 9, 9, 9, -1, -1 },
    { "tampered", VERDICT_TAMPERED, 9, 9, 9, -1, -1 },
    { "right, but the clock could not tell", VERDICT_UNDECIDED, 9, 9, 9, 1, 1 },
};

static void milestones(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct verdict v = { .status = rows[i].status,
                             .vs_eager = { 10, rows[i].eager, 20 },
                             .vs_compile = { 10, rows[i].compile, 20 },
                             .vs_best = { 10, rows[i].best, 20 } };
        print_message("%s\n", rows[i].name);
        assert_int_equal(reward_milestone(&v, AGAINST_PAPER), rows[i].paper);
        assert_int_equal(reward_milestone(&v, AGAINST_BEST), rows[i].against_best);
    }
}

static void raw_speedup(void **state)
{
    (void)state;
    struct verdict v = { .status = VERDICT_PASS, .vs_compile = { 2.5, 2, 3 } };
    assert_true(reward_speedup(&v) == 2.5);
    v.status = VERDICT_WRONG;
    assert_true(reward_speedup(&v) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(milestones),
                                        cmocka_unit_test(raw_speedup) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
