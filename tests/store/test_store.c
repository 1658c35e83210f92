/* The store: what is put comes back, two processes share it, strange files are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sqlite3.h>
#include <sys/wait.h>

#include "core/json.h"
#include "store/store.h"
#include "sys/file.h"

struct fixture {
    struct arena a;
    const char *dir, *path;
};

static int begin(void **state)
{
    static struct fixture f;
    struct err err = { 0 };
    f = (struct fixture){ 0 };
    if (dir_temp(&f.a, "/tmp", "store", &f.dir, &err) != OK)
        return -1;
    f.path = path_join(&f.a, f.dir, "store.db");
    *state = &f;
    return 0;
}

static int end(void **state)
{
    struct fixture *f = *state;
    struct err err = { 0 };
    int rc = dir_remove(f->dir, &err) == OK ? 0 : -1;
    arena_fini(&f->a);
    return rc;
}

static struct store *opened(const char *path)
{
    struct store *s = NULL;
    struct err err = { 0 };
    assert_string_equal(store_open(path, &s, &err) == OK ? "" : err.text, "");
    return s;
}

/* One number from the file, read by SQLite itself. */
static int number(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *q = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &q, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    int n = sqlite3_column_int(q, 0);
    sqlite3_finalize(q);
    sqlite3_close(db);
    return n;
}

static void ids(void **state)
{
    (void)state;
    char id[2][27];
    store_id(id[0]);
    store_id(id[1]);
    assert_int_equal(strlen(id[0]), 26);
    assert_int_equal(strspn(id[0], "0123456789ABCDEFGHJKMNPQRSTVWXYZ"), 26);
    assert_string_not_equal(id[0], id[1]);
    /* The first ten characters are the milliseconds: they never go back. */
    assert_true(strncmp(id[0], id[1], 10) <= 0);
    assert_true(id[0][0] <= '7');
}

static void baselines(void **state)
{
    struct fixture *f = *state;
    struct err err = { 0 };
    const char *json = "unset";
    struct store *s = opened(f->path);
    struct baseline_key key = { "t1", "gpu", "v1", "eager" }, other = key;
    other.versions = "v2";
    assert_int_equal(store_baseline_get(s, &f->a, &key, &json, &err), OK);
    assert_null(json);
    assert_int_equal(store_baseline_put(s, &key, "{\"median\":1}", &err), OK);
    assert_int_equal(store_baseline_put(s, &key, "{\"median\":2}", &err), OK);
    assert_int_equal(store_baseline_get(s, &f->a, &other, &json, &err), OK);
    assert_null(json);
    store_close(s);
    s = opened(f->path);
    assert_int_equal(store_baseline_get(s, &f->a, &key, &json, &err), OK);
    assert_string_equal(json, "{\"median\":2}");
    store_close(s);
}

static void everything_else(void **state)
{
    struct fixture *f = *state;
    struct err err = { 0 };
    struct store *s = opened(f->path);
    struct task t = { .name = "a", .source = S("class Model: pass"), .hash = "h1" };
    struct candidate c = { .target = TARGET_CPU, .author = "hand", .n_files = 2 };
    c.file[0] = (struct source_file){ "a.c", S("int a; // caf\xe9") };
    c.file[1] = (struct source_file){ "b.h", S("") };
    candidate_seal(&c);
    struct verdict v = { .id = "v1", .task_hash = "h1", .status = VERDICT_PASS };
    assert_int_equal(store_task_put(s, &t, &err), OK);
    assert_int_equal(store_task_put(s, &t, &err), OK);
    assert_int_equal(store_candidate_put(s, &c, "h1", &err), OK);
    assert_int_equal(store_verdict_put(s, &v, &err), OK);
    assert_int_equal(store_verdict_put(s, &v, &err), ERR_SYSTEM); /* an id is used once */
    v.id[0] = '\0';
    assert_int_equal(store_verdict_put(s, &v, &err), ERR_STATE);
    assert_int_equal(store_run_put(s, "r1", "optimize", "{}", "running", &err), OK);
    assert_int_equal(store_run_put(s, "r1", "optimize", "{}", "done", &err), OK);
    store_close(s);
    assert_int_equal(number(f->path, "SELECT count(*) FROM task"), 1);
    assert_int_equal(number(f->path, "SELECT count(*) FROM run WHERE state = 'done'"), 1);
    assert_int_equal(number(f->path, "SELECT count(*) FROM verdict WHERE json LIKE '%pass%'"), 1);
    assert_int_equal(
        number(f->path, "SELECT count(*) FROM candidate WHERE files LIKE '%636166e9%'"), 1);
}

#define WRITES 60

/* Both open a file that is not there yet, then write at the same time. */
static void write_many(const char *path, const char *device)
{
    struct store *s = NULL;
    struct err err = { 0 };
    if (store_open(path, &s, &err) != OK)
        _exit(2);
    for (int i = 0; i < WRITES; i++) {
        struct verdict v = { 0 };
        char id[27];
        store_id(id);
        memcpy(v.id, id, sizeof id);
        struct baseline_key key = { id, device, "v", "eager" };
        if (store_verdict_put(s, &v, &err) != OK || store_baseline_put(s, &key, "{}", &err) != OK)
            _exit(3);
    }
    store_close(s);
    _exit(0);
}

static void two_processes(void **state)
{
    struct fixture *f = *state;
    pid_t pid[2];
    for (int i = 0; i < 2; i++) {
        pid[i] = fork();
        assert_true(pid[i] >= 0);
        if (pid[i] == 0)
            write_many(f->path, i ? "b" : "a");
    }
    for (int i = 0; i < 2; i++) {
        int status = -1;
        assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(number(f->path, "SELECT count(*) FROM verdict"), 2 * WRITES);
    assert_int_equal(number(f->path, "SELECT count(*) FROM baseline"), 2 * WRITES);
}

static void strange_files(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *name, *sql; /* sql NULL: a text file */
        enum err_code want;
        const char *error;
    } rows[] = {
        { "schema of tomorrow", "UPDATE meta SET value = '2' WHERE key = 'schema'", ERR_FORMAT,
          "has schema 2, this program knows 1" },
        { "no schema row", "DELETE FROM meta", ERR_FORMAT, "has schema (none)" },
        { "another program's", "DROP TABLE meta", ERR_FORMAT, "another program" },
        { "no database", NULL, ERR_FORMAT, "not a database" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct err err = { 0 };
        struct store *s = NULL;
        const char *path = arena_fmt(&f->a, "%s/strange%zu.db", f->dir, i);
        print_message("%s\n", rows[i].name);
        if (rows[i].sql != NULL) {
            sqlite3 *db = NULL;
            store_close(opened(path));
            assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
            assert_int_equal(sqlite3_exec(db, rows[i].sql, NULL, NULL, NULL), SQLITE_OK);
            sqlite3_close(db);
        } else {
            static char text[4096];
            memset(text, 'x', sizeof text);
            assert_int_equal(file_write(path, (struct str){ text, sizeof text }, 0600, &err), OK);
        }
        assert_int_equal(store_open(path, &s, &err), rows[i].want);
        if (strstr(err.text, rows[i].error) == NULL)
            fail_msg("'%s' does not say '%s'", err.text, rows[i].error);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids),
        cmocka_unit_test_setup_teardown(baselines, begin, end),
        cmocka_unit_test_setup_teardown(everything_else, begin, end),
        cmocka_unit_test_setup_teardown(two_processes, begin, end),
        cmocka_unit_test_setup_teardown(strange_files, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
