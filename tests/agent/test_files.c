/* Files: objects, snapshots and back, keys that are not written, the best. */
#include "agent/snapshot.h"
#include "tests/agent/world.h"

struct place_of {
    const char *work, *objects;
};

static struct place_of folders(struct world *w)
{
    struct err err = { 0 };
    struct place_of p = { path_join(&w->a, w->top, "work"), path_join(&w->a, w->top, "objects") };
    fine(dir_make(p.work, 0755, &err));
    fine(dir_make(p.objects, 0755, &err));
    return p;
}

static void lay(struct world *w, struct place_of p, const char *name, const char *text)
{
    struct err err = { 0 };
    const char *path = path_join(&w->a, p.work, name);
    const char *folder = arena_fmt(&w->a, "%.*s", (int)(strrchr(path, '/') - path), path);
    fine(dir_make(folder, 0755, &err));
    fine(file_write(path, str_from(text), 0644, &err));
}

static const char *held(struct world *w, struct place_of p, const char *name)
{
    struct err err = { 0 };
    struct str text;
    return file_read(&w->a, path_join(&w->a, p.work, name), 1 << 20, &text, &err) == OK ? text.ptr
                                                                                        : NULL;
}

static void there_and_back(void **state)
{
    struct world *w = world_new();
    struct err err = { 0 };
    struct place_of p = folders(w);
    struct snapshot s = { 0 };
    json_t *tree = NULL, *same = NULL;
    (void)state;
    lay(w, p, "kernels/a.cu", "one");
    lay(w, p, "run.sh", "echo");
    chmod(path_join(&w->a, p.work, "run.sh"), 0755);
    lay(w, p, ".cache/big", "not kept");
    assert_int_equal(symlink("/etc/passwd", path_join(&w->a, p.work, "link")), 0);
    fine(snapshot_take(&s, p.work, p.objects, &tree, &err));
    assert_int_equal(json_array_size(json_object_get(tree, "files")), 2);
    assert_int_equal(json_array_size(json_object_get(tree, "skipped")), 2);
    fine(snapshot_take(&s, p.work, p.objects, &same, &err));
    assert_null(same);
    /* A file goes, one changes, one comes, a folder takes a file's place. */
    lay(w, p, "kernels/b.cu", "two");
    lay(w, p, "kernels/a.cu", "changed");
    assert_int_equal(unlink(path_join(&w->a, p.work, "run.sh")), 0);
    lay(w, p, "run.sh/inside", "x");
    fine(snapshot_restore(p.work, p.objects, json_object_get(tree, "files"), &err));
    assert_string_equal(held(w, p, "kernels/a.cu"), "one");
    assert_string_equal(held(w, p, "run.sh"), "echo");
    assert_null(held(w, p, "kernels/b.cu"));
    assert_string_equal(held(w, p, ".cache/big"), "not kept");
    json_t *again = NULL;
    char before[SHA256_HEX];
    memcpy(before, s.tree, sizeof before);
    fine(snapshot_take(&s, p.work, p.objects, &again, &err));
    assert_null(again);
    assert_string_equal(before, s.tree);
    struct stat st;
    assert_int_equal(stat(path_join(&w->a, p.work, "run.sh"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0755);
    json_decref(tree);
    snapshot_fini(&s);
    world_end(w);
}

static void trees_are_not_trusted(void **state)
{
    static const char *const rows[] = { "../out", "/etc/x", "a/../../out", "" };
    struct world *w = world_new();
    struct place_of p = folders(w);
    struct err err = { 0 };
    char hash[SHA256_HEX];
    (void)state;
    fine(objects_put(p.objects, S("text"), hash, &err));
    for (size_t i = 0; i < COUNT(rows); i++) {
        own_json files =
            json_pack("[{s:s, s:s, s:i}]", "path", rows[i], "hash", hash, "mode", 0644);
        assert_int_not_equal(snapshot_restore(p.work, p.objects, files, &err), OK);
    }
    own_json bad =
        json_pack("[{s:s, s:s, s:i}]", "path", "a", "hash", "../../etc/passwd", "mode", 0644);
    assert_int_equal(snapshot_restore(p.work, p.objects, bad, &err), ERR_FORMAT);
    /* An object that somebody changed is none. */
    const char *path = path_join(&w->a, p.objects, hash);
    struct str ret;
    fine(file_write(path, S("other"), 0644, &err));
    assert_int_equal(objects_get(&w->a, p.objects, str_from(hash), &ret, &err), ERR_FORMAT);
    assert_false(path_exists(path_join(&w->a, w->top, "out")));
    world_end(w);
}

static void too_much(void **state)
{
    struct world *w = world_new();
    struct place_of p = folders(w);
    struct err err = { 0 };
    struct snapshot s = { 0 };
    json_t *tree = NULL;
    (void)state;
    char *big = arena_new(&w->a, char, SNAPSHOT_FILE_MAX + 2);
    memset(big, 'x', SNAPSHOT_FILE_MAX + 1);
    lay(w, p, "big.bin", big);
    big[SNAPSHOT_FILE_MAX] = '\0';
    lay(w, p, "fits.bin", big);
    fine(snapshot_take(&s, p.work, p.objects, &tree, &err));
    assert_int_equal(s.n, 1);
    const json_t *skipped = json_array_get(json_object_get(tree, "skipped"), 0);
    assert_true(str_eq(member_text(skipped, "path"), S("big.bin")));
    json_decref(tree);
    snapshot_fini(&s);
    world_end(w);
}

static void keys(void **state)
{
    struct world *w = world_new();
    struct err err = { 0 };
    struct secrets s;
    const char *file = path_join(&w->a, w->top, "key");
    (void)state;
    fine(file_write(file, S("  from-a-file-123\n"), 0600, &err));
    setenv("SOME_TOKEN", "token-of-the-environment", 1);
    setenv("NAMED_ONE", "named-by-the-caller", 1);
    setenv("SHORT_KEY", "abc", 1);
    fine(secrets_gather(&w->a, (const char *const[]){ "NAMED_ONE", "ABSENT", NULL },
                        (const char *const[]){ file, NULL }, &s, &err));
    own_json j = json_pack("{s:[s,s], s:{s:s}, s:s}", "a", "x from-a-file-123 y",
                           "named-by-the-callernamed-by-the-caller", "b", "c",
                           "token-of-the-environment", "d", "abc stays");
    redact(&s, j);
    own_mem char *text = json_dumps(j, JSON_SORT_KEYS | JSON_COMPACT);
    assert_string_equal(text, "{\"a\":[\"x [key] y\",\"[key][key]\"],\"b\":{\"c\":\"[key]\"},"
                              "\"d\":\"abc stays\"}");
    unsetenv("SOME_TOKEN");
    unsetenv("NAMED_ONE");
    unsetenv("SHORT_KEY");
    world_end(w);
}

static json_t *verdict(const char *status, double us)
{
    return json_pack("{s:s, s:{s:{s:f}}}", "status", status, "time_us", "candidate", "median", us);
}

static void better(void **state)
{
    static const struct {
        const char *a, *b;
        double us_a, us_b;
        bool want;
    } rows[] = {
        { "pass", NULL, 10, 0, true },        { "wrong", NULL, 10, 0, false },
        { "pass", "pass", 9, 10, true },      { "pass", "pass", 10, 10, false },
        { "pass", "pass", 0, 10, false },     { "pass", "pass", 10, 0, true },
        { "undecided", "pass", 9, 10, true }, { "tampered", "pass", 1, 10, false },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        own_json a = verdict(rows[i].a, rows[i].us_a);
        own_json b = rows[i].b ? verdict(rows[i].b, rows[i].us_b) : NULL;
        if (verdict_better(a, b) != rows[i].want)
            fail_msg("row %zu", i);
    }
}

static void best_is_kept(void **state)
{
    struct world *w = world_new();
    struct place_of p = folders(w);
    struct err err = { 0 };
    struct keep k;
    char hash[SHA256_HEX];
    (void)state;
    fine(dir_make(w->config.out, 0755, &err));
    fine(keep_open(&k, w->config.out, &err));
    assert_null(k.best);
    fine(objects_put(p.objects, S("kernel"), hash, &err));
    own_json eval = json_pack("{s:s, s:o, s:[{s:s, s:s}]}", "candidate", "c1", "verdict",
                              verdict("pass", 5), "files", "path", "kernels/k.cu", "hash", hash);
    own_json worse =
        json_pack("{s:s, s:o, s:[]}", "candidate", "c2", "verdict", verdict("pass", 6), "files");
    own_json evil = json_pack("{s:s, s:o, s:[{s:s, s:s}]}", "candidate", "c3", "verdict",
                              verdict("pass", 1), "files", "path", "../../x", "hash", hash);
    fine(keep_offer(&k, 2, eval, p.objects, &err));
    fine(keep_offer(&k, 1, worse, p.objects, &err));
    assert_int_equal(keep_offer(&k, 1, evil, p.objects, &err), ERR_FORMAT);
    keep_close(&k);
    fine(keep_open(&k, w->config.out, &err));
    assert_string_equal(json_string_value(json_object_get(k.best, "candidate")), "c1");
    assert_true(path_exists(arena_fmt(&w->a, "%s/best/kernels/k.cu", w->config.out)));
    keep_close(&k);
    world_end(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_and_back), cmocka_unit_test(trees_are_not_trusted),
        cmocka_unit_test(too_much),       cmocka_unit_test(keys),
        cmocka_unit_test(better),         cmocka_unit_test(best_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
