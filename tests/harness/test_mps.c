/* A listening MPS daemon is refused; a folder without one, or a pipe left behind, is not. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/own.h"
#include "harness/exam_int.h"
#include "sys/file.h"

static void test_mps(void **state)
{
    own_arena a = { 0 };
    struct err err = { 0 };
    const char *dir = NULL;
    (void)state;
    assert_int_equal(dir_temp(&a, "/tmp", "mps", &dir, &err), OK);
    assert_int_equal(exam_refuse_mps(dir, &err), OK);
    const char *pipe = path_join(&a, dir, "control");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_int_equal(exam_refuse_mps(dir, &err), OK);
    own_fd reader = open(pipe, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(reader >= 0);
    assert_int_equal(exam_refuse_mps(dir, &err), ERR_MISSING);
    assert_int_equal(dir_remove(dir, &(struct err){ 0 }), OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_mps) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
