/* A workspace is laid, written and read back; a changed task is noticed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/stat.h>
#include <unistd.h>

#include "sys/file.h"
#include "workspace/workspace.h"

/* S() as a constant initialiser. */
#define LIT(text)                 \
    {                             \
        "" text, sizeof(text) - 1 \
    }

static const struct task task = { .name = "t",
                                  .path = "t.py",
                                  .source = LIT("class Model: pass\n") };

static struct candidate candidate_of(const char *name, const char *text)
{
    struct candidate c = { .target = TARGET_CPU, .author = "hand", .n_files = 1 };
    c.file[0] = (struct source_file){ name, str_from(text) };
    candidate_seal(&c);
    return c;
}

static void lay_put_get(void **state)
{
    (void)state;
    own_arena a = { 0 };
    struct err err = { 0 };
    struct stat st;
    const char *top = NULL;
    assert_int_equal(dir_temp(&a, "/tmp", "workspace", &top, &err), OK);
    const char *dir = path_join(&a, top, "deep/er");
    assert_string_equal(workspace_lay(dir, &task, CONTRACT_NATIVE, &err) == OK ? "" : err.text, "");
    static const char *const frozen[] = { "model.py", "cuda_agent.h", "README.md" };
    for (size_t i = 0; i < COUNT(frozen); i++) {
        assert_int_equal(stat(path_join(&a, dir, frozen[i]), &st), 0);
        assert_int_equal(st.st_mode & 0777, 0444);
    }

    struct candidate first = candidate_of("a.c", "int a;"), second = candidate_of("b.c", "int b;");
    struct candidate got = { 0 };
    assert_int_equal(workspace_put(dir, &first, &err), OK);
    assert_int_equal(workspace_get(&a, dir, &task, TARGET_CPU, &got, &err), OK);
    assert_string_equal(got.hash, first.hash);
    assert_int_equal(workspace_put(dir, &second, &err), OK);
    assert_int_equal(workspace_get(&a, dir, &task, TARGET_CPU, &got, &err), OK);
    assert_string_equal(got.hash, second.hash); /* a.c is gone */

    /* Laying again mends what is frozen and leaves the author's work. */
    assert_int_equal(file_write(path_join(&a, dir, "model.py"), S("else\n"), 0644, &err), OK);
    assert_int_equal(workspace_get(&a, dir, &task, TARGET_CPU, &got, &err), ERR_STATE);
    assert_int_equal(workspace_lay(dir, &task, CONTRACT_NATIVE, &err), OK);
    assert_int_equal(workspace_get(&a, dir, &task, TARGET_CPU, &got, &err), OK);
    assert_string_equal(got.hash, second.hash);
    assert_int_equal(dir_remove(top, &err), OK);
}

/* A file that cannot be written must leave the old candidate whole and no litter. */
static void all_or_none(void **state)
{
    (void)state;
    own_arena a = { 0 };
    struct err err = { 0 };
    struct str *left;
    size_t n;
    const char *dir = NULL;
    assert_int_equal(dir_temp(&a, "/tmp", "workspace", &dir, &err), OK);
    struct candidate good = candidate_of("a.c", "int a;"), bad = candidate_of("no/b.c", "int b;");
    struct candidate got = { 0 };
    assert_int_equal(workspace_put(dir, &good, &err), OK);
    assert_int_equal(workspace_put(dir, &bad, &err), ERR_SYSTEM);
    assert_int_equal(candidate_read(&a, dir, TARGET_CPU, &got, &err), OK);
    assert_string_equal(got.hash, good.hash);
    assert_int_equal(dir_list(&a, dir, NULL, &left, &n, &err), OK);
    assert_int_equal(n, 0);
    assert_int_equal(rmdir(path_join(&a, dir, "kernels")), -1);
    assert_int_equal(dir_remove(path_join(&a, dir, "kernels"), &err), OK);
    assert_int_equal(rmdir(dir), 0); /* no hidden folder stayed */
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(lay_put_get),
                                        cmocka_unit_test(all_or_none) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
