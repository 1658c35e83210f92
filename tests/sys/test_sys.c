/* Files and processes as they behave at their limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/own.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/proc.h"

struct room {
    struct arena a;
    const char *dir;
};

static int room_open(void **state)
{
    struct room *r = calloc(1, sizeof *r);
    struct err err = { 0 };
    if (r == NULL || dir_temp(&r->a, "/tmp", "ca-sys", &r->dir, &err) != OK)
        return -1;
    *state = r;
    return 0;
}

static int room_close(void **state)
{
    struct room *r = *state;
    struct err err = { 0 };
    int bad = dir_remove(r->dir, &err) != OK || path_exists(r->dir);
    arena_fini(&r->a);
    free(r);
    return bad ? -1 : 0;
}

/* ---- files ---- */

static void write_and_read(void **state)
{
    struct room *r = *state;
    struct err err = { 0 };
    struct str s;
    struct stat st;
    const char *path = path_join(&r->a, r->dir, "a");
    assert_int_equal(file_write(path, S("one\0two"), 0640, &err), OK);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(file_read(&r->a, path, 7, &s, &err), OK);
    assert_int_equal(s.len, 7);
    assert_memory_equal(s.ptr, "one\0two\0", 8);
    assert_int_equal(file_read(&r->a, path, 6, &s, &err), ERR_LIMIT);
    assert_non_null(strstr(err.text, "more than 6 bytes"));

    assert_int_equal(file_write(path, S(""), 0600, &err), OK); /* over the old one */
    assert_int_equal(file_read(&r->a, path, 0, &s, &err), OK);
    assert_int_equal(s.len, 0);
    assert_int_equal(file_read(&r->a, "/proc/self/maps", 16, &s, &err), ERR_LIMIT); /* no size */
    assert_int_equal(file_read(&r->a, "/dev/zero", 1 << 20, &s, &err), ERR_FORMAT);
    const char *pipe = path_join(&r->a, r->dir, "pipe");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_int_equal(file_read(&r->a, pipe, 1 << 20, &s, &err), ERR_FORMAT); /* and does not wait */
    assert_int_equal(file_read(&r->a, r->dir, 100, &s, &err), ERR_FORMAT);
    assert_int_equal(file_read(&r->a, path_join(&r->a, r->dir, "gone"), 9, &s, &err), ERR_SYSTEM);
    assert_int_equal(err.sys, ENOENT);
}

/* What cannot be finished leaves neither half a file nor its temporary. */
/* Whoever gets the descriptor cannot change what it shows, nor the file behind it. */
static void sealed(void **state)
{
    struct room *r = *state;
    const char *path = path_join(&r->a, r->dir, "object");
    struct err err = { 0 };
    char got[8] = "";
    int fd = -1, none = -1;
    assert_int_equal(file_write(path, S("bytes"), 0644, &err), OK);
    assert_int_equal(file_sealed(path, &fd, &err), OK);
    own_fd again = open(arena_fmt(&r->a, "/proc/self/fd/%d", fd), O_RDWR | O_CLOEXEC);
    assert_true(again < 0 || write(again, "x", 1) < 0);
    assert_int_not_equal(ftruncate(fd, 0), 0);
    assert_int_equal(pread(fd, got, 8, 0), 5);
    assert_string_equal(got, "bytes");
    close(fd);
    assert_int_equal(file_sealed(path_join(&r->a, r->dir, "none"), &none, &err), ERR_SYSTEM);
}

static void write_fails_whole(void **state)
{
    struct room *r = *state;
    struct err err = { 0 };
    struct str *name;
    size_t n = 0;
    const char *taken = path_join(&r->a, r->dir, "folder");
    assert_int_equal(dir_make(path_join(&r->a, taken, "in/side"), 0755, &err), OK);
    assert_int_equal(file_write(taken, S("x"), 0644, &err), ERR_SYSTEM);
    assert_int_equal(file_write(path_join(&r->a, r->dir, "no/way"), S("x"), 0644, &err),
                     ERR_SYSTEM);
    assert_int_equal(dir_list(&r->a, r->dir, NULL, &name, &n, &err), OK);
    assert_int_equal(n, 0);
}

static void list(void **state)
{
    static const char *const names[] = { "b.cu", "a.h", "c.txt", ".h", "d.c" };
    static const char *const endings[] = { ".cu", ".h", NULL };
    struct room *r = *state;
    struct err err = { 0 };
    struct str *name;
    size_t n = 0;
    for (size_t i = 0; i < COUNT(names); i++)
        assert_int_equal(file_write(path_join(&r->a, r->dir, names[i]), S("x"), 0644, &err), OK);
    assert_int_equal(symlink("a.h", path_join(&r->a, r->dir, "link.h")), 0);
    assert_int_equal(symlink("/etc/passwd", path_join(&r->a, r->dir, "out.cu")), 0);
    assert_int_equal(mkfifo(path_join(&r->a, r->dir, "pipe.h"), 0600), 0);
    assert_int_equal(mkdir(path_join(&r->a, r->dir, "dir.h"), 0700), 0);
    assert_int_equal(dir_list(&r->a, r->dir, endings, &name, &n, &err), OK);
    assert_int_equal(n, 3);
    assert_string_equal(name[0].ptr, ".h");
    assert_string_equal(name[1].ptr, "a.h");
    assert_string_equal(name[2].ptr, "b.cu");
    assert_int_equal(dir_list(&r->a, r->dir, NULL, &name, &n, &err), OK);
    assert_int_equal(n, 5);
    for (int i = 0; i < 40; i++)
        assert_int_equal(
            file_write(path_join(&r->a, r->dir, arena_fmt(&r->a, "%d.x", i)), S(""), 0644, &err),
            OK);
    assert_int_equal(dir_list(&r->a, r->dir, NULL, &name, &n, &err), OK);
    assert_int_equal(n, 45);
}

static void remove_stays_inside(void **state)
{
    struct room *r = *state;
    struct err err = { 0 };
    const char *victim = path_join(&r->a, r->dir, "victim");
    const char *doomed = path_join(&r->a, r->dir, "doomed");
    assert_int_equal(dir_make(victim, 0755, &err), OK);
    assert_int_equal(dir_make(doomed, 0755, &err), OK);
    assert_int_equal(file_write(path_join(&r->a, victim, "f"), S("x"), 0644, &err), OK);
    assert_int_equal(symlink(victim, path_join(&r->a, doomed, "link")), 0);
    assert_int_equal(dir_remove(doomed, &err), OK);
    assert_false(path_exists(doomed));
    assert_true(path_exists(path_join(&r->a, victim, "f")));
    assert_int_equal(dir_remove(doomed, &err), OK); /* gone already */
}

static void homes(void **state)
{
    struct room *r = *state;
    struct err err = { 0 };
    const char *got = NULL;
    setenv("CUDA_AGENT_HOME", path_join(&r->a, r->dir, "deep/home"), 1);
    assert_int_equal(home_dir(&r->a, &got, &err), OK);
    assert_true(path_exists(got));
    unsetenv("CUDA_AGENT_HOME");
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", r->dir, 1);
    assert_int_equal(home_dir(&r->a, &got, &err), OK);
    assert_string_equal(got, path_join(&r->a, r->dir, ".cache/cuda-agent"));
    unsetenv("HOME");
    assert_int_equal(home_dir(&r->a, &got, &err), ERR_CONFIG);
    assert_non_null(strstr(err.hint, "CUDA_AGENT_HOME"));
}

/* ---- processes ---- */

static struct proc_result shell(struct arena *a, const char *script, int64_t wall_ms, size_t max)
{
    const char *argv[] = { "sh", "-c", script, NULL };
    struct proc_spec spec = { .argv = argv, .wall_ms = wall_ms, .out_max = max };
    struct proc_result p = { 0 };
    struct err err = { 0 };
    assert_int_equal(proc_run(a, &spec, &p, &err), OK);
    return p;
}

static void ends(void **state)
{
    static const struct {
        const char *script;
        int status;
        const char *out, *errs;
    } rows[] = {
        { "echo out; echo err >&2; exit 3", 3, "out\n", "err\n" },
        { "kill -9 $$", 137, "", "" },
        { "kill -SEGV $$", 139, "", "" },
        { "cat", 0, "", "" },                              /* stdin is empty */
        { "exec >&- 2>&-; sleep 0.1; exit 5", 5, "", "" }, /* streams end before it does */
    };
    struct room *r = *state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct proc_result p = shell(&r->a, rows[i].script, 5000, 100);
        print_message("%s\n", rows[i].script);
        assert_int_equal(p.status, rows[i].status);
        assert_string_equal(p.out.ptr, rows[i].out);
        assert_string_equal(p.err_out.ptr, rows[i].errs);
        assert_false(p.timed_out || p.out_cut);
    }
    const char *argv[] = { "no-such-program", NULL };
    struct proc_spec spec = { .argv = argv, .wall_ms = 1000, .out_max = 10 };
    struct proc_result p = { 0 };
    struct err err = { 0 };
    assert_int_equal(proc_run(&r->a, &spec, &p, &err), OK);
    assert_int_equal(p.status, 127);
}

static void environment(void **state)
{
    struct room *r = *state;
    const char *argv[] = { "/bin/sh", "-c", "echo \"$A|$HOME\"; pwd", NULL };
    const char *env[] = { "A=b c", NULL };
    struct proc_spec spec = {
        .argv = argv, .env = env, .dir = "/usr", .wall_ms = 5000, .out_max = 100
    };
    struct proc_result p = { 0 };
    struct err err = { 0 };
    setenv("HOME", "/tmp", 1);
    assert_int_equal(proc_run(&r->a, &spec, &p, &err), OK);
    assert_string_equal(p.out.ptr, "b c|\n/usr\n");
}

static void cut(void **state)
{
    struct room *r = *state;
    struct proc_result p =
        shell(&r->a, "head -c 300000 /dev/zero | tr '\\0' x; echo e >&2", 9000, 1000);
    assert_int_equal(p.status, 0); /* it is read to the end, so it does not die of SIGPIPE */
    assert_true(p.out_cut);
    assert_int_equal(p.out.len, 1000);
    assert_string_equal(p.err_out.ptr, "e\n");
}

/* The grandchild is killed, too: by its pid, which the script tells. */
static void time_out(void **state)
{
    struct room *r = *state;
    int64_t start = clock_ms();
    struct proc_result p = shell(&r->a, "sleep 60 & echo $!; wait", 300, 100);
    assert_true(p.timed_out);
    assert_int_equal(p.status, 128 + SIGKILL);
    assert_true(clock_ms() - start < 5000);
    pid_t grandchild = (pid_t)atoi(p.out.ptr);
    assert_true(grandchild > 1);
    bool gone = false;
    for (int i = 0; i < 200 && !gone; i++) {
        struct str stat;
        struct err err = { 0 };
        /* Nobody may have reaped it here: a zombie is dead, too. */
        gone = file_read(&r->a, arena_fmt(&r->a, "/proc/%d/stat", grandchild), 4096, &stat, &err) !=
                   OK ||
               strstr(stat.ptr, ") Z ") != NULL;
        if (!gone)
            usleep(10000);
    }
    assert_true(gone);
}

/* What is left running behind a finished child goes with its group. */
static void left_behind(void **state)
{
    struct room *r = *state;
    int64_t start = clock_ms();
    struct proc_result p = shell(&r->a, "sleep 60 >/dev/null 2>&1 & echo $!", 5000, 100);
    assert_int_equal(p.status, 0);
    assert_true(clock_ms() - start < 4000);
    for (int i = 0; i < 200 && kill((pid_t)atoi(p.out.ptr), 0) == 0; i++) {
        struct str stat;
        struct err err = { 0 };
        if (file_read(&r->a, arena_fmt(&r->a, "/proc/%s/stat", str_z(&r->a, str_trim(p.out))), 4096,
                      &stat, &err) == OK &&
            strstr(stat.ptr, ") Z ") != NULL)
            return;
        usleep(10000);
        assert_true(i < 199);
    }
}

int main(void)
{
#define ROW(f) cmocka_unit_test_setup_teardown(f, room_open, room_close)
    const struct CMUnitTest tests[] = {
        ROW(write_and_read), ROW(write_fails_whole),   ROW(sealed),
        ROW(list),           ROW(remove_stays_inside), ROW(homes),
        ROW(ends),           ROW(environment),         ROW(cut),
        ROW(time_out),       ROW(left_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
