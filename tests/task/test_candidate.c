/* What candidate_read and task_read take and what they refuse, on a real folder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/own.h"
#include "sys/file.h"
#include "task/task.h"

/* S() as a constant initialiser. */
#define LIT(text)                 \
    {                             \
        "" text, sizeof(text) - 1 \
    }

enum entry_kind { END, A_FILE, A_BIG_FILE, A_LINK, A_FOLDER, A_FIFO };

struct entry {
    const char *name;
    enum entry_kind kind;
};

static const struct {
    const char *name;
    enum target target;
    struct entry entry[4]; /* below the work folder */
    const char *error;     /* part of the text; NULL: taken */
    const char *files;     /* names in order */
} rows[] = {
    { "sources of the target only, sorted",
      TARGET_CPU,
      { { "kernels/b.c", A_FILE }, { "kernels/a.h", A_FILE }, { "kernels/k.cu", A_FILE } },
      NULL,
      "a.h b.c" },
    { "cuda takes all four endings",
      TARGET_CUDA,
      { { "kernels/k.cu", A_FILE }, { "kernels/k.cuh", A_FILE }, { "kernels/a.c", A_FILE } },
      NULL,
      "a.c k.cu k.cuh" },
    { "no kernels folder: the folder itself",
      TARGET_CPU,
      { { "a.c", A_FILE }, { "model.py", A_FILE } },
      NULL,
      "a.c" },
    { "kernels is there: the folder above is not looked at",
      TARGET_CPU,
      { { "kernels/a.c", A_FILE }, { "b.c", A_FILE } },
      NULL,
      "a.c" },
    { "hidden files are left out",
      TARGET_CPU,
      { { "kernels/a.c", A_FILE }, { "kernels/.#a.c", A_LINK } },
      NULL,
      "a.c" },
    { "a link", TARGET_CPU, { { "kernels/a.c", A_LINK } }, "symbolic link", NULL },
    { "a folder named like a source",
      TARGET_CPU,
      { { "kernels/a.c", A_FOLDER } },
      "no regular file",
      NULL },
    { "a FIFO does not hang", TARGET_CPU, { { "kernels/a.c", A_FIFO } }, "no regular file", NULL },
    { "kernels is a link", TARGET_CPU, { { "kernels", A_LINK } }, "link or a file", NULL },
    { "too big", TARGET_CPU, { { "kernels/a.c", A_BIG_FILE } }, "more than 1048576 bytes", NULL },
    { "a name like an option", TARGET_CPU, { { "kernels/-x.c", A_FILE } }, "not allowed", NULL },
    { "a name with a space", TARGET_CPU, { { "kernels/a b.c", A_FILE } }, "not allowed", NULL },
    { "nothing for this target",
      TARGET_CPU,
      { { "kernels/k.cu", A_FILE } },
      "no cpu source",
      NULL },
};

static void entry_make(struct arena *a, const char *dir, const struct entry *e)
{
    struct err err = { 0 };
    const char *path = path_join(a, dir, e->name);
    if (strchr(e->name, '/') != NULL)
        assert_int_equal(dir_make(path_join(a, dir, "kernels"), 0700, &err), OK);
    static char big[CANDIDATE_FILE_BYTES_MAX + 1];
    memset(big, ' ', sizeof big);
    switch (e->kind) {
    case A_FILE:
        assert_int_equal(file_write(path, S("int x;\n"), 0600, &err), OK);
        break;
    case A_BIG_FILE:
        assert_int_equal(file_write(path, (struct str){ big, sizeof big }, 0600, &err), OK);
        break;
    case A_LINK:
        assert_int_equal(symlink("/tmp", path), 0);
        break;
    case A_FOLDER:
        assert_int_equal(mkdir(path, 0700), 0);
        break;
    case A_FIFO:
        assert_int_equal(mkfifo(path, 0600), 0);
        break;
    case END:
        break;
    }
}

static const char *names_of(struct arena *a, const struct candidate *c)
{
    struct buf b = { .arena = a, .max = 4096 };
    for (size_t i = 0; i < c->n_files; i++)
        buf_addf(&b, "%s%s", i ? " " : "", c->file[i].name);
    return b.ptr;
}

static void folders(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        own_arena a = { 0 };
        struct err err = { 0 };
        struct candidate c = { 0 };
        const char *dir = NULL;
        print_message("%s\n", rows[i].name);
        assert_int_equal(dir_temp(&a, "/tmp", "candidate", &dir, &err), OK);
        for (const struct entry *e = rows[i].entry; e < rows[i].entry + 4 && e->kind != END; e++)
            entry_make(&a, dir, e);
        enum err_code code = candidate_read(&a, dir, rows[i].target, &c, &err);
        if (rows[i].error == NULL) {
            assert_string_equal(code == OK ? names_of(&a, &c) : err.text, rows[i].files);
            assert_int_equal(strlen(c.hash), HASH_HEX - 1);
        } else {
            assert_int_equal(code, ERR_FORMAT);
            if (strstr(err.text, rows[i].error) == NULL)
                fail_msg("'%s' does not say '%s'", err.text, rows[i].error);
        }
        assert_int_equal(dir_remove(dir, &err), OK);
    }
}

static void too_many_files(void **state)
{
    (void)state;
    own_arena a = { 0 };
    struct err err = { 0 };
    struct candidate c = { 0 };
    const char *dir = NULL;
    assert_int_equal(dir_temp(&a, "/tmp", "candidate", &dir, &err), OK);
    for (int i = 0; i <= CANDIDATE_FILES_MAX; i++) {
        struct entry e = { arena_fmt(&a, "f%d.c", i), A_FILE };
        entry_make(&a, dir, &e);
    }
    assert_int_equal(candidate_read(&a, dir, TARGET_CPU, &c, &err), ERR_LIMIT);
    assert_int_equal(dir_remove(dir, &err), OK);
}

static void tasks(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        struct str text;
        enum err_code want;
    } task_rows[] = {
        { "softmax.py", LIT("class Model: pass\n"), OK },
        { "softmax.txt", LIT("class Model: pass\n"), ERR_TASK },
        { ".py", LIT("class Model: pass\n"), ERR_TASK },
        { "empty.py", LIT(" \n"), ERR_TASK },
        { "latin.py", LIT("# caf\xe9\n"), ERR_TASK },
        { "nul.py", LIT("a\0b\n"), ERR_TASK },
    };
    for (size_t i = 0; i < COUNT(task_rows); i++) {
        own_arena a = { 0 };
        struct err err = { 0 };
        struct task t = { 0 };
        const char *dir = NULL;
        print_message("%s\n", task_rows[i].file);
        assert_int_equal(dir_temp(&a, "/tmp", "task", &dir, &err), OK);
        const char *path = path_join(&a, dir, task_rows[i].file);
        assert_int_equal(file_write(path, task_rows[i].text, 0600, &err), OK);
        assert_int_equal(task_read(&a, path, &t, &err), task_rows[i].want);
        if (task_rows[i].want == OK)
            assert_string_equal(t.name, "softmax");
        assert_int_equal(dir_remove(dir, &err), OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders),
        cmocka_unit_test(too_many_files),
        cmocka_unit_test(tasks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
