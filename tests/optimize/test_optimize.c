/* The loop around an author, against a fake exam: what is kept, refused, resumed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/wait.h>
#include <unistd.h>

#include "core/json.h"
#include "fake_exam.h"
#include "optimize/optimize.h"
#include "sys/file.h"
#include "sys/stop.h"

/* S() as a constant initialiser. */
#define LIT(text)                 \
    {                             \
        "" text, sizeof(text) - 1 \
    }

static const struct task task = { .name = "t",
                                  .path = "t.py",
                                  .source = LIT("class Model: pass\n"),
                                  .hash = "0123456789abcdef0123456789abcdef" };

/* What the author under test proposes, in order; '!' in front asks for a full grading. */
static const char *const *proposals;
static int refused; /* grade() returned a code */
static bool saw_graph;

static enum err_code scripted_run(struct author_ctx *ctx, struct err *err)
{
    static struct verdict v;
    saw_graph = ctx->graph != NULL;
    assert_string_equal(ctx->device_name, "A device");
    assert_string_equal(ctx->cuda_arch, "90a");
    assert_int_equal(ctx->threads, 2);
    for (const char *const *p = proposals; *p != NULL; p++) {
        struct candidate c = { .target = ctx->target, .n_files = 1 };
        bool quick = (*p)[0] != '!';
        c.file[0] = (struct source_file){ "k.c", str_from(*p + !quick) };
        if (ctx->grade(ctx, &c, quick, &v, err) != OK) {
            refused++;
            return err->code;
        }
        assert_string_equal(v.author, "scripted");
    }
    return OK;
}

static const struct author_ops scripted = { .name = "scripted", .help = "", .run = scripted_run };

#define PROPOSE(...)      \
    (const char *const[]) \
    {                     \
        __VA_ARGS__, NULL \
    }

struct fixture {
    struct arena a;
    const char *dir;
    struct optimize_config cfg;
    struct optimize_result r;
    struct err err;
};

static int begin(void **state)
{
    static struct fixture f;
    f = (struct fixture){ 0 };
    fake = (struct fake_exam){ 0 };
    refused = 0;
    if (dir_temp(&f.a, "/tmp", "optimize", &f.dir, &f.err) != OK)
        return -1;
    f.cfg = (struct optimize_config){ .exam = { .target = TARGET_CPU, .against = AGAINST_BEST },
                                      .task = &task,
                                      .author = &scripted,
                                      .out = path_join(&f.a, f.dir, "out"),
                                      .seconds = 60 };
    *state = &f;
    return 0;
}

static int end(void **state)
{
    struct fixture *f = *state;
    optimize_result_fini(&f->r);
    int rc = dir_remove(f->dir, &f->err) == OK ? 0 : -1;
    arena_fini(&f->a);
    return rc;
}

static enum err_code work(struct fixture *f, const char *const *what)
{
    proposals = what;
    optimize_result_fini(&f->r);
    f->err = (struct err){ 0 };
    return optimize_run(&f->cfg, &f->r, &f->err);
}

/* The source that OUT/best holds, "" when there is none. */
static const char *best_source(struct fixture *f)
{
    struct candidate c = { 0 };
    struct err err = { 0 };
    const char *dir = path_join(&f->a, f->cfg.out, "best");
    if (candidate_read(&f->a, dir, TARGET_CPU, &c, &err) != OK)
        return "";
    return str_z(&f->a, c.file[0].text);
}

static void keeps_the_fastest_that_passes(void **state)
{
    struct fixture *f = *state;
    assert_string_equal(
        work(f, PROPOSE("pass 150", "wrong", "pass 120", "pass 130")) == OK ? "" : f->err.text, "");
    assert_string_equal(best_source(f), "pass 120");
    assert_true(f->r.found && f->r.confirmed && f->r.beats);
    assert_int_equal(f->r.attempts, 5); /* four, and one full grading of the best */
    assert_int_equal(f->r.passed, 3);
    assert_int_equal(fake.graded_full, 1);
    assert_int_equal(f->r.best.reward_milestone, 3);
    assert_true(saw_graph);
    assert_int_equal(fake.opened, fake.closed);

    /* OUT/best is a work folder, and its verdict is readable. */
    struct str text;
    own_json j = NULL;
    struct verdict v;
    const char *path = path_join(&f->a, f->cfg.out, "best/verdict.json");
    assert_true(path_exists(path_join(&f->a, f->cfg.out, "best/model.py")));
    assert_int_equal(file_read(&f->a, path, 1 << 20, &text, &f->err), OK);
    assert_int_equal(json_parse(text, 1 << 20, &j, &f->err), OK);
    assert_int_equal(verdict_from_json(j, &v, &f->err), OK);
    assert_string_equal(v.candidate_hash, f->r.best.candidate_hash);
}

static void a_lucky_look_does_not_win(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(work(f, PROPOSE("pass 150", "flaky 10")), OK);
    assert_string_equal(best_source(f), "pass 150");
    assert_true(f->r.confirmed);
    assert_int_equal(f->r.passed, 1);
    /* And alone, it leaves nothing behind. */
    f->cfg.fresh = true;
    assert_int_equal(work(f, PROPOSE("flaky 10")), OK);
    assert_false(f->r.found);
    assert_false(f->r.beats);
    assert_string_equal(best_source(f), "");
}

static void the_gate(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double eager, compile, best;
        enum verdict_status status;
        int milestone;
        bool beats_best, beats_paper;
    } rows[] = {
        { "beats all", 2, 2, 1.06, VERDICT_PASS, 3, true, true },
        { "beats what the paper compares with", 2, 2, 1.05, VERDICT_PASS, 2, false, true },
        { "compile was not measured", 2, 0, 1.06, VERDICT_PASS, 2, true, false },
        { "wrong", 2, 2, 2, VERDICT_WRONG, -1, false, false },
        { "undecided", 2, 2, 2, VERDICT_UNDECIDED, 1, false, false },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct verdict v = { .status = rows[i].status,
                             .reward_milestone = rows[i].milestone,
                             .vs_eager.lo = rows[i].eager,
                             .vs_compile.lo = rows[i].compile,
                             .vs_best.lo = rows[i].best };
        print_message("%s\n", rows[i].name);
        assert_int_equal(optimize_beats(&v, AGAINST_BEST), rows[i].beats_best);
        assert_int_equal(optimize_beats(&v, AGAINST_PAPER), rows[i].beats_paper);
    }
}

static void verified_but_slow(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(work(f, PROPOSE("pass 195")), OK);
    assert_true(f->r.found && f->r.confirmed);
    assert_false(f->r.beats);
}

static void resumes(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(work(f, PROPOSE("pass 150", "wrong", "pass 120")), OK);
    fake.graded = fake.graded_full = 0;
    assert_int_equal(work(f, PROPOSE("pass 150", "wrong", "pass 120", "pass 100")), OK);
    /* The best of the first run in full at once, the new one quick and in full. */
    assert_int_equal(fake.graded, 3);
    assert_int_equal(fake.graded_full, 2);
    assert_int_equal(f->r.reused, 3);
    assert_string_equal(best_source(f), "pass 100");
    /* Asking for a full grading of what only the log knows grades it. */
    fake.graded = 0;
    assert_int_equal(work(f, PROPOSE("!pass 150", "!pass 150")), OK);
    assert_int_equal(fake.graded, 2); /* the best, and this one once */
}

static void another_device_drops_the_times(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(work(f, PROPOSE("pass 150", "pass 120")), OK);
    fake.device_uuid = "device-2";
    fake.graded = 0;
    assert_int_equal(work(f, PROPOSE("pass 150")), OK);
    assert_int_equal(f->r.reused, 0);
    assert_int_equal(fake.graded, 2); /* the best anew, and 150, whose verdict was foreign */
    assert_string_equal(best_source(f), "pass 120");
}

/* A candidate that does not even compile ran nowhere: it says nothing about the others. */
static void no_device_is_not_another_device(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(work(f, PROPOSE("pass 150", "nowhere")), OK);
    assert_int_equal(f->r.passed, 1);
    assert_string_equal(best_source(f), "pass 150");
}

static void a_folder_belongs_to_one_run(void **state)
{
    struct fixture *f = *state;
    struct task other = task;
    other.hash[0] = 'f';
    struct author_ops somebody = scripted;
    somebody.name = "somebody";
    assert_int_equal(work(f, PROPOSE("pass 150")), OK);
    struct optimize_config mine = f->cfg;
    f->cfg.task = &other;
    assert_int_equal(work(f, PROPOSE("pass 150")), ERR_STATE);
    assert_non_null(strstr(f->err.text, "another task"));
    f->cfg = mine, f->cfg.author = &somebody;
    assert_int_equal(work(f, PROPOSE("pass 150")), ERR_STATE);
    assert_non_null(strstr(f->err.text, "another author"));
    f->cfg = mine, f->cfg.exam.preset = PRESET_STRICT;
    assert_int_equal(work(f, PROPOSE("pass 150")), ERR_STATE);
    f->cfg = mine, f->cfg.task = &other, f->cfg.fresh = true;
    assert_int_equal(work(f, PROPOSE("pass 150")), OK);
}

static void the_budget_ends_an_author(void **state)
{
    struct fixture *f = *state;
    f->cfg.seconds = 0;
    assert_int_equal(work(f, PROPOSE("pass 150")), OK);
    assert_int_equal(refused, 1);
    assert_int_equal(fake.graded, 0);
    assert_false(f->r.found);
}

static void a_machine_error_is_an_error(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(work(f, PROPOSE("pass 150", "error", "pass 100")), ERR_WORKER);
    assert_non_null(strstr(f->err.text, "the worker died"));
    assert_int_equal(fake.opened, fake.closed);
    assert_string_equal(best_source(f), "pass 150"); /* what was found stays */
    assert_int_equal(work(f, PROPOSE("pass 150")), OK);
    assert_int_equal(f->r.reused, 1);
}

static void a_changed_candidate_is_not_the_best(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(work(f, PROPOSE("pass 150", "pass 120")), OK);
    const char *dir =
        arena_fmt(&f->a, "%s/candidates/%s/kernels/k.c", f->cfg.out, f->r.best.candidate_hash);
    assert_int_equal(file_write(dir, S("pass 1"), 0644, &f->err), OK);
    assert_int_equal(work(f, PROPOSE("wrong")), OK);
    assert_string_equal(best_source(f), "pass 150");
}

static void unsound_tasks(void **state)
{
    struct fixture *f = *state;
    fake.check = "{\"sound\":false, \"degenerate\":[], \"facts\":{\"deterministic\":false}}";
    assert_int_equal(work(f, PROPOSE("pass 150")), ERR_TASK);
    assert_non_null(strstr(f->err.text, "two calls on the same input disagree"));
    fake.check = "{\"sound\":false, \"degenerate\":[], \"facts\":{\"unsettled_share\":0.02}}";
    assert_int_equal(work(f, PROPOSE("pass 150")), ERR_TASK);
    assert_non_null(strstr(f->err.text, "hang on rounding"));
    fake.check = "{\"sound\":false, \"degenerate\":[\"zero passes\"], \"facts\":{}}";
    fake.no_graph = true;
    assert_int_equal(work(f, PROPOSE("pass 150")), OK);
    assert_false(saw_graph);
    own_json j = optimize_json(&f->cfg, &f->r);
    assert_string_equal(json_string_value(json_array_get(json_object_get(j, "degenerate"), 0)),
                        "zero passes");
    assert_true(json_is_false(json_object_get(j, "traced")));
}

static void the_table(void **state)
{
    struct fixture *f = *state;
    struct buf b = { .arena = &f->a, .max = 1 << 16 };
    assert_int_equal(work(f, PROPOSE("pass 100")), OK);
    optimize_print(&f->cfg, &f->r, &b);
    static const char *const said[] = {
        "verified and more than 5% faster",
        "scripted",
        "100.000 us  [99.000, 101.000]",
        "2.00x [1.98, 2.02]",
        "graph(eager)",
        "400.000 us  [396.000, 404.000]",
    };
    for (size_t i = 0; i < COUNT(said); i++)
        if (strstr(b.ptr, said[i]) == NULL)
            fail_msg("'%s' is not in\n%s", said[i], b.ptr);
    /* The null author: no candidate, PyTorch's rows all the same. */
    struct buf null = { .arena = &f->a, .max = 1 << 16 };
    f->cfg.author = &flags_author;
    f->cfg.out = path_join(&f->a, f->dir, "flags");
    assert_int_equal(work(f, PROPOSE("")), OK);
    optimize_print(&f->cfg, &f->r, &null);
    assert_non_null(strstr(null.ptr, "no candidate is verified"));
    assert_non_null(strstr(null.ptr, "200.000 us  [198.000, 202.000]"));
    own_json j = optimize_json(&f->cfg, &f->r);
    assert_true(json_is_null(json_object_get(j, "verdict")));
    assert_true(json_is_false(json_object_get(j, "beats")));
}

/* In a child: the flag of ^C cannot be taken back. */
static void interrupted(void **state)
{
    struct fixture *f = *state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        stop_install();
        enum err_code code = work(f, PROPOSE("pass 150", "stop 120", "pass 100"));
        _exit(code == OK && f->r.stopped && !f->r.confirmed && fake.graded == 2 ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_string_equal(best_source(f), "stop 120");
    fake.deaf = true;
    assert_int_equal(work(f, PROPOSE("pass 150")), OK); /* resumes */
    assert_true(f->r.confirmed);
    assert_int_equal(f->r.reused, 1);
}

#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(keeps_the_fastest_that_passes),
        T(a_lucky_look_does_not_win),
        cmocka_unit_test(the_gate),
        T(verified_but_slow),
        T(resumes),
        T(another_device_drops_the_times),
        T(no_device_is_not_another_device),
        T(a_folder_belongs_to_one_run),
        T(the_budget_ends_an_author),
        T(a_machine_error_is_an_error),
        T(a_changed_candidate_is_not_the_best),
        T(unsound_tasks),
        T(the_table),
        T(interrupted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
