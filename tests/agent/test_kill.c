/* An episode that is killed again and again, at any place, and taken up again, ends as one that was
 * left alone: the same events but for their times, the same files, the same best.
 *
 * CA_KILLS: how many kills (40). Half of them come behind an event that was written, half after a
 * time that the parent chooses. */
#include <sys/resource.h>
#include <time.h>

#include "agent/snapshot.h"
#include "tests/agent/script.h"

#define KILLS 40

static uint64_t seed = 88172645463325252u;

static uint64_t draw(uint64_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % below;
}

/* ---- what must be the same ---- */

static void without_times(json_t *events)
{
    static const char *const times[] = { "at", "seq", "ms", "first_byte_ms", "episode" };
    for (size_t i = json_array_size(events); i-- > 0;) {
        json_t *e = json_array_get(events, i);
        for (size_t k = 0; k < COUNT(times); k++)
            json_object_del(e, times[k]);
        json_object_del(json_object_get(e, "totals"), "seconds");
        if (str_eq(member_text(e, "event"), S("resumed")))
            json_array_remove(events, i);
    }
}

struct outcome {
    json_t *events;
    char tree[SHA256_HEX];
    json_t *best;
};

static struct outcome outcome_of(struct world *w)
{
    struct err err = { 0 };
    struct outcome o = { .events = world_events(w) };
    struct snapshot s = { 0 };
    json_t *tree = NULL;
    struct keep keep;
    without_times(o.events);
    const char *dir = arena_fmt(&w->a, "%s/attempt-1", w->config.out);
    fine(snapshot_take(&s, path_join(&w->a, dir, "workspace"), path_join(&w->a, dir, "objects"),
                       &tree, &err));
    memcpy(o.tree, s.tree, sizeof o.tree);
    json_decref(tree);
    snapshot_fini(&s);
    fine(keep_open(&keep, w->config.out, &err));
    o.best = json_incref(keep.best);
    keep_close(&keep);
    return o;
}

static void outcome_free(struct outcome *o)
{
    json_decref(o->events);
    json_decref(o->best);
}

static void same_events(const json_t *a, const json_t *b)
{
    size_t n = json_array_size(a), m = json_array_size(b);
    for (size_t i = 0; i < n && i < m; i++) {
        const json_t *x = json_array_get(a, i), *y = json_array_get(b, i);
        if (json_equal(x, y))
            continue;
        char *p = json_dumps(x, JSON_SORT_KEYS), *q = json_dumps(y, JSON_SORT_KEYS);
        fail_msg("event %zu differs:\n%.1500s\n%.1500s", i, p, q);
    }
    assert_int_equal(n, m);
}

/* ---- the kills ---- */

static void child_run(struct world *w)
{
    struct err err = { 0 };
    struct agent_result r = { 0 };
    if (agent_run(&w->config, 1, &w->a, &r, &err) != OK) {
        fprintf(stderr, "%s\n", err.text);
        _exit(1);
    }
    if (strcmp(r.attempt[0].status, "submitted") != 0) {
        fprintf(stderr, "ended as %s: %s\n", r.attempt[0].status, r.attempt[0].reason);
        _exit(2);
    }
    _exit(0);
}

/* True: it was killed. */
static bool run_and_kill(struct world *w, bool kill_it)
{
    int status;
    bool by_time = kill_it && draw(2) == 0;
    w->events = 0;
    w->die_at = kill_it && !by_time ? (int64_t)draw(40) + 1 : 0;
    int64_t wait_us = (int64_t)draw(12000);
    pid_t pid = fork();
    if (pid == 0)
        child_run(w);
    if (by_time) {
        struct timespec t = { .tv_nsec = wait_us * 1000 };
        nanosleep(&t, NULL);
        kill(pid, SIGKILL);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status))
        return true;
    assert_int_equal(WEXITSTATUS(status), 0);
    return false;
}

struct reference {
    struct world *w;
    struct outcome want;
    const char *steer;
};

static void out_new(struct reference *r, const char *name)
{
    struct err err = { 0 };
    struct world *w = r->w;
    w->config.out = path_join(&w->a, w->top, name);
    fine(dir_make(path_join(&w->a, w->config.out, "attempt-1"), 0755, &err));
    fine(file_write(path_join(&w->a, w->config.out, "attempt-1/steer"), str_from(r->steer), 0644,
                    &err));
}

/* As it was left alone. */
static struct reference reference_new(void)
{
    struct reference r = { .w = world_new(), .steer = "Mind the bank conflicts." };
    script_make(r.w);
    out_new(&r, "out");
    assert_false(run_and_kill(r.w, false));
    r.want = outcome_of(r.w);
    assert_true(count_named(r.want.events, "context") > 2);
    assert_non_null(r.want.best);
    return r;
}

static void reference_end(struct reference *r)
{
    outcome_free(&r->want);
    world_end(r->w);
}

static void ends_the_same(struct reference *r)
{
    struct err err = { 0 };
    struct outcome got = outcome_of(r->w);
    same_events(r->want.events, got.events);
    assert_string_equal(got.tree, r->want.tree);
    assert_true(json_equal(got.best, r->want.best));
    outcome_free(&got);
    fine(dir_remove(r->w->config.out, &err));
}

/* The disk is full at some byte of some file: the attempt ends as an error, and is gone on with. */
static void full_disk(void **state)
{
    struct reference r = reference_new();
    (void)state;
    for (int i = 0; i < 12; i++) {
        int status;
        out_new(&r, "full");
        pid_t pid = fork();
        if (pid == 0) {
            struct rlimit size = { 600 + draw(120000), RLIM_INFINITY };
            struct err err = { 0 };
            struct agent_result res = { 0 };
            r.w->die_at = 0;
            signal(SIGXFSZ, SIG_IGN);
            setrlimit(RLIMIT_FSIZE, &size);
            _exit(agent_run(&r.w->config, 1, &r.w->a, &res, &err) == OK ? 0 : 1);
        }
        draw(2);
        waitpid(pid, &status, 0);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
        assert_false(run_and_kill(r.w, false));
        ends_the_same(&r);
    }
    reference_end(&r);
}

static void killed(void **state)
{
    struct err err = { 0 };
    const char *asked = getenv("CA_KILLS");
    int64_t kills = KILLS, done = 0, runs = 0;
    struct reference r = reference_new();
    (void)state;
    if (asked != NULL)
        fine(str_int(str_from(asked), 1, 1000000, &kills, &err));
    for (; done < kills; runs++) {
        out_new(&r, "killed");
        while (run_and_kill(r.w, done < kills))
            done++;
        ends_the_same(&r);
    }
    print_message("%lld kills in %lld episodes of %zu events\n", (long long)done, (long long)runs,
                  json_array_size(r.want.events));
    reference_end(&r);
}

/* Behind each single event, with CA_KILL_EACH; else behind some. */
static void killed_behind_each(void **state)
{
    struct reference r = reference_new();
    int64_t step = getenv("CA_KILL_EACH") != NULL ? 1 : 37;
    (void)state;
    for (int64_t at = 1; at < (int64_t)json_array_size(r.want.events); at += step) {
        int status;
        out_new(&r, "each");
        pid_t pid = fork();
        if (pid == 0) {
            r.w->events = 0;
            r.w->die_at = at;
            child_run(r.w);
        }
        waitpid(pid, &status, 0);
        assert_true(WIFSIGNALED(status));
        assert_false(run_and_kill(r.w, false));
        ends_the_same(&r);
    }
    reference_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(killed),
                                        cmocka_unit_test(killed_behind_each),
                                        cmocka_unit_test(full_disk) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
