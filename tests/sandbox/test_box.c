/* Each row tries to leave the box, and the wall must hold; a few rows must be allowed.
 *
 * The program is its own probe: with `--probe NAME RUNG LAIR` it runs one attempt, in the box,
 * and says with its exit status whether the wall held. LAIR is a folder outside that anybody may
 * write. Everything runs again as in a container that refuses namespaces (rung 2), and as
 * root once more each as an ordinary user.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/own.h"
#include "probes.h"
#include "sandbox/box.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/proc.h"

#define MIB ((int64_t)1 << 20)

/* ---- outside ---- */

static const char *const env[] = { "PATH=/usr/bin:/bin", "A=b", NULL };
static struct box_mount mounts[] = { { NULL, "/probe", false, false } }; /* from: main */

static struct box_spec spec_of(enum box_role role, const char *const *argv)
{
    return (struct box_spec){ .role = role,
                              .argv = argv,
                              .env = env,
                              .mounts = mounts,
                              .n_mounts = 1,
                              .channel_fd = -1,
                              .stdin_fd = -1,
                              .out_fd = -1,
                              .err_fd = -1,
                              .mem_bytes = 512 * MIB,
                              .tmp_bytes = 16 * MIB,
                              .tasks_max = 64 };
}

static struct box_output run(struct arena *a, const struct box_spec *spec, int64_t wall_ms)
{
    struct box_output out = { 0 };
    struct err err = { 0 };
    if (box_run(a, spec, wall_ms, 65536, &out, &err) != OK)
        fail_msg("%s", err.text);
    return out;
}

static const char *const rung_text[] = { "0", "1", "2", "3" };

static struct box_output run_probe(struct arena *a, const char *name, enum box_role role)
{
    const char *argv[] = { "/probe", "--probe", name, rung_text[rung], lair, NULL };
    struct box_spec spec = spec_of(role, argv);
    return run(a, &spec, 10000);
}

static void walls(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_probes; i++) {
        own_arena a = { 0 };
        if (probes[i].apart)
            continue;
        if (probes[i].rung != 0 && probes[i].rung != rung)
            continue;
        struct box_output out = run_probe(&a, probes[i].name, probes[i].role);
        if (out.result.end != BOX_EXITED || out.result.status != 0)
            fail_msg("%s: end %d, status %d: %s", probes[i].name, (int)out.result.end,
                     out.result.status, out.err_out.ptr);
    }
}

/* Shell scripts in a builder's box; the script's output and status are the answer. */
static void seen_from_inside(void **state)
{
    static const struct {
        const char *script, *out;
        int rung; /* only there; 0: everywhere */
    } rows[] = {
        { "grep -E '^Cap(Inh|Prm|Eff|Amb)' /proc/$$/status | grep -vc 0000000000000000", "0\n", 0 },
        { "grep -E '^CapBnd' /proc/$$/status | grep -vc 0000000000000000", "0\n", 1 },
        { "grep -E '^(NoNewPrivs|Seccomp):' /proc/$$/status | tr -s '\\t\\n' ' '",
          "NoNewPrivs: 1 Seccomp: 2 ", 0 },
        { "test \"$(id -u)\" -gt 0 && test \"$(id -g)\" -gt 0 && echo yes", "yes\n", 0 },
        { "grep -c . /proc/$$/uid_map; awk '{print $3}' /proc/$$/uid_map", "1\n1\n", 1 },
        { "touch /x /usr/x /etc/x /dev/x /probe 2>/dev/null; echo $?", "1\n", 0 },
        { "echo hi > x && cat x && test -O x && rm x && echo mine", "hi\nmine\n", 0 },
        { "ls ~root /root /home /var /etc /work /run 2>/dev/null | wc -l", "0\n", 2 },
        { "cat /etc/passwd /proc/1/environ /proc/1/cmdline 2>/dev/null | wc -c", "0\n", 2 },
        { "sh -c 'setsid sh -c \"(sleep 30; echo late) &\"' & echo gone", "gone\n", 0 },
        { "for i in /root /home /var /work /oldroot /newroot /run /boot /etc/passwd /etc/shadow "
          "/sys/fs /sys/class; do test -e $i && echo $i; done; true",
          "", 1 },
        { "ls /dev | tr '\\n' ' '", "full null random urandom zero ", 1 },
        { "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '", "lo\n", 1 },
        { "ls -d /proc/[0-9]* | wc -l | tr -d ' ' | grep -cE '^[1-5]$'", "1\n", 1 },
        { "echo $$; tr '\\0' ' ' < /proc/1/cmdline | cut -c 1-7", "1\n/bin/sh\n", 1 },
        { "kill -0 2 2>/dev/null; kill -9 -1 2>/dev/null; echo alive", "alive\n", 0 },
        { "env | sort | grep -vE '^(PWD|_|SHLVL|OLDPWD)='", "A=b\nPATH=/usr/bin:/bin\n", 0 },
        { "pwd", "/tmp\n", 0 }, /* below rung 1 the answer is turned back */
        { "ulimit -c; ulimit -n", "0\n4096\n", 0 },
        { "cat", "", 0 }, /* no input */
        { "mknod n c 1 3 2>/dev/null; echo $?", "1\n", 0 },
        { "cp /bin/true t && ./t && echo ran", "ran\n", 0 }, /* a builder may */
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        own_arena a = { 0 };
        const char *argv[] = { "/bin/sh", "-c", rows[i].script, NULL };
        struct box_spec spec = spec_of(BOX_BUILDER, argv);
        if (rows[i].rung != 0 && rows[i].rung != rung)
            continue;
        struct box_output out = run(&a, &spec, 10000);
        if (out.result.end != BOX_EXITED || strcmp(out.out.ptr, rows[i].out) != 0)
            fail_msg("%s\nsaid '%s', wanted '%s'; end %d; %s", rows[i].script, out.out.ptr,
                     rows[i].out, (int)out.result.end, out.err_out.ptr);
    }
}

static void ends(void **state)
{
    static const struct {
        const char *script;
        enum box_end end;
        int status;
    } rows[] = {
        { "exit 7", BOX_EXITED, 7 },
        { "ulimit -t 1; while :; do :; done", BOX_SIGNALLED, SIGKILL },
        { "sleep 60", BOX_TIMED_OUT, SIGKILL },
        { "sleep 60 & sleep 60 & wait", BOX_TIMED_OUT, SIGKILL },
        { "exec sleep 60 >&- 2>&-", BOX_TIMED_OUT, SIGKILL },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        own_arena a = { 0 };
        const char *argv[] = { "/bin/sh", "-c", rows[i].script, NULL };
        struct box_spec spec = spec_of(BOX_BUILDER, argv);
        spec.cpu_s = 1;
        int64_t start = clock_ms();
        struct box_output out = run(&a, &spec, i == 1 ? 10000 : 400);
        if (out.result.end != rows[i].end || out.result.status != rows[i].status)
            fail_msg("%s: end %d, status %d", rows[i].script, (int)out.result.end,
                     out.result.status);
        assert_true(clock_ms() - start < 8000);
    }
}

static void limits(void **state)
{
    own_arena a = { 0 };
    const char *argv[] = { "/probe", "--probe", "memory", rung_text[rung], lair, NULL };
    struct box_spec spec = spec_of(BOX_RUNNER, argv);
    (void)state;
    spec.mem_bytes = 64 * MIB;
    struct box_output out = run(&a, &spec, 20000);
    assert_int_equal(out.result.end, BOX_OUT_OF_MEMORY);
    assert_true(out.result.mem_peak_bytes >= 32 * MIB);

    argv[2] = "file size";
    spec = spec_of(BOX_RUNNER, argv);
    spec.file_bytes = 1 * MIB;
    out = run(&a, &spec, 10000);
    assert_int_equal(out.result.end, BOX_EXITED);
    assert_int_equal(out.result.status, 0);
}

static void tmp_is_bounded(void **state)
{
    own_arena a = { 0 };
    (void)state;
    if (rung == 1)
        skip(); /* a row of `walls` */
    struct box_output out = run_probe(&a, "flood of /tmp", BOX_RUNNER);
    assert_int_equal(out.result.end, BOX_OUT_OF_MEMORY);
}

/* What a box leaves running or lying about goes with it, and so does its folder. */
static void leaves_nothing(void **state)
{
    static const char script[] =
        "mkdir -p a/b && touch a/b/c; for i in 1 2 3; do setsid sh -c 'sleep 77 & sleep 77' & done;"
        " (trap '' TERM HUP; sleep 77) & echo $$";
    const char *argv[] = { "/bin/sh", "-c", script, NULL };
    own_arena a = { 0 };
    (void)state;
    struct box_spec spec = spec_of(BOX_BUILDER, argv);
    struct box_output out = run(&a, &spec, 10000);
    assert_int_equal(out.result.end, BOX_EXITED);
    DIR *d = opendir("/proc");
    for (struct dirent *e = d ? readdir(d) : NULL; e != NULL; e = readdir(d)) {
        struct str text;
        struct err err = { 0 };
        const char *path = arena_fmt(&a, "/proc/%s/cmdline", e->d_name);
        if (e->d_name[0] > '9' || file_read(&a, path, 65536, &text, &err) != OK || text.len < 9)
            continue;
        assert_false(memcmp(text.ptr, "sleep\00077", 9) == 0);
    }
    closedir(d);
    d = opendir("/tmp");
    const char *ours = arena_fmt(&a, "cuda-agent-box-%d-", (int)getpid());
    for (struct dirent *e = d ? readdir(d) : NULL; e != NULL; e = readdir(d))
        assert_false(strncmp(e->d_name, ours, strlen(ours)) == 0);
    closedir(d);
}

/* A file that is mounted read-only into a writable folder, closed to writing as it lies there. */
static void frozen_in_workspace(void **state)
{
    static const char script[] =
        "cd /w/sub && id -u; for c in 'echo x >f' 'rm -f f' 'mv f g' 'chmod 666 f' 'ln f g' 'mv "
        "../sub "
        "../s' 'rm -rf ../sub' 'echo x >new'; do (eval \"$c\") 2>/dev/null; echo $?; done; cat f";
    const char *argv[] = { "/bin/sh", "-c", script, NULL };
    own_arena a = { 0 };
    struct err err = { 0 };
    const char *dir = NULL;
    (void)state;
    if (rung != 1)
        skip(); /* Landlock takes back nothing */
    assert_int_equal(dir_temp(&a, "/tmp", "ca-w", &dir, &err), OK);
    const char *sub = path_join(&a, dir, "sub"), *f = path_join(&a, sub, "f");
    assert_int_equal(mkdir(sub, 0755), 0);
    assert_int_equal(file_write(f, S("frozen"), 0444, &err), OK);
    const struct box_mount in[] = { { dir, "/w", true, false },
                                    { sub, "/w/sub", true, false },
                                    { f, "/w/sub/f", false, false } };
    struct box_spec spec = spec_of(BOX_WORKSPACE, argv);
    spec.mounts = in;
    spec.n_mounts = COUNT(in);
    struct box_output out = run(&a, &spec, 10000);
    struct str rest = out.out, uid, want = S("2\n1\n1\n1\n1\n1\n1\n0\nfrozen");
    assert_true(str_cut(&rest, '\n', &uid));
    if (geteuid() == 0)
        assert_true(str_starts(uid, S("5")) && uid.len == 5);
    if (!str_eq(rest, want))
        fail_msg("%s%s", out.out.ptr, out.err_out.ptr);
    assert_int_equal(dir_remove(dir, &err), OK);
}

static void output_is_cut(void **state)
{
    own_arena a = { 0 };
    const char *argv[] = { "/bin/sh", "-c", "head -c 200000 /dev/zero; echo done >&2", NULL };
    struct box_spec spec = spec_of(BOX_BUILDER, argv);
    struct box_output out = { 0 };
    struct err err = { 0 };
    (void)state;
    assert_int_equal(box_run(&a, &spec, 10000, 1000, &out, &err), OK);
    assert_true(out.out_cut);
    assert_int_equal(out.out.len, 1000);
    assert_string_equal(out.err_out.ptr, "done\n");
    assert_int_equal(out.result.status, 0);
}

static void cannot_start(void **state)
{
    static const char *const argv[] = { "/no/such/program", NULL };
    static const char *const true_argv[] = { "/bin/true", NULL };
    const struct box_mount gone[] = { { "/no/such/folder", "/x", false, false } };
    own_arena a = { 0 };
    struct err err = { 0 };
    struct box_output out = { 0 };
    struct box_spec spec = spec_of(BOX_BUILDER, argv);
    (void)state;
    assert_int_equal(box_run(&a, &spec, 1000, 100, &out, &err), ERR_SYSTEM);
    assert_non_null(strstr(err.text, "start '/no/such/program'"));
    spec = spec_of(BOX_BUILDER, true_argv);
    spec.mounts = gone;
    assert_int_equal(box_run(&a, &spec, 1000, 100, &out, &err), ERR_SYSTEM);
    assert_non_null(strstr(err.text, "/no/such/folder"));
}

/* ---- a box that lives ---- */

struct live {
    struct box *box;
    int channel; /* our end */
};

static struct live start_as(enum box_role role, const char *name)
{
    const char *argv[] = { "/probe", "--probe", name, rung_text[rung], lair, NULL };
    struct box_spec spec = spec_of(role, argv);
    struct live l = { NULL, -1 };
    struct err err = { 0 };
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    spec.channel_fd = pair[1];
    if (box_start(&spec, &l.box, &err) != OK)
        fail_msg("%s", err.text);
    close(pair[1]);
    l.channel = pair[0];
    return l;
}

static struct live start(const char *name)
{
    return start_as(BOX_RUNNER, name);
}

static void stop(struct live *l)
{
    box_destroy(l->box);
    close(l->channel);
}

static void held_processors(void **state)
{
    own_arena a = { 0 };
    const char *argv[] = { "/probe", "--probe", "processors", rung_text[rung], lair, NULL };
    struct box_spec spec = spec_of(BOX_RUNNER, argv);
    (void)state;
    spec.cpus_max = 1;
    struct box_output out = run(&a, &spec, 5000);
    assert_int_equal(out.result.end, BOX_EXITED);
    assert_int_equal(out.result.status, 0);
}

static void channel(void **state)
{
    static const char *const names[] = { "channel", "descriptors" };
    (void)state;
    /* Descriptors of ours that must not be seen inside, close-on-exec or not. */
    int leak = open("/dev/null", O_RDONLY), leak_high = dup2(leak, 333);
    for (size_t i = 0; i < COUNT(names); i++) {
        struct live l = start(names[i]);
        struct err err = { 0 };
        struct box_result r = { 0 };
        char got[2] = { 0 };
        if (i == 0) {
            assert_int_equal(recv(l.channel, got, 2, MSG_WAITALL), 2);
            assert_memory_equal(got, "hi", 2);
            assert_int_equal(write(l.channel, "!", 1), 1);
        }
        assert_int_equal(box_wait(l.box, 5000, &r, &err), OK);
        assert_int_equal(r.end, BOX_EXITED);
        assert_int_equal(r.status, 0);
        stop(&l);
    }
    close(leak);
    close(leak_high);
}

/* Ticks that arrive within ms. */
static int ticks(int fd, int ms)
{
    char all[4096];
    int n = 0;
    int64_t until = clock_ms() + ms;
    while (clock_ms() < until) {
        ssize_t got = recv(fd, all, sizeof all, MSG_DONTWAIT);
        n += got > 0 ? (int)got : 0;
        usleep(1000);
    }
    return n;
}

static void pausing(void **state)
{
    struct live l = start("tick");
    (void)state;
    assert_true(ticks(l.channel, 300) > 0);
    for (int i = 0; i < 3; i++) {
        assert_true(box_pause(l.box));
        ticks(l.channel, 5); /* what was on its way */
        assert_int_equal(ticks(l.channel, 60), 0);
        assert_true(box_paused(l.box));
        box_resume(l.box);
        assert_true(ticks(l.channel, 300) > 0);
        assert_false(box_paused(l.box));
    }
    assert_true(box_pause(l.box));
    pid_t pid = box_pid(l.box);
    stop(&l); /* a paused box dies, too */
    assert_int_equal(kill(pid, 0), -1);
}

/* Its threads send it SIGCONT all the time: it is stopped, and stays so. */
static void pausing_the_restless(void **state)
{
    struct live l = start("restless");
    (void)state;
    assert_true(ticks(l.channel, 300) > 0);
    for (int i = 0; i < 20; i++) {
        assert_true(box_pause(l.box));
        ticks(l.channel, 5);
        assert_int_equal(ticks(l.channel, 20), 0);
        assert_true(box_paused(l.box));
        kill(box_pid(l.box), SIGCONT); /* of somebody else's */
        ticks(l.channel, 20);
        assert_false(box_paused(l.box));
    }
    stop(&l);
}

/* Who waits in the kernel for a child of vfork's does not stop, and that is said. */
static void pausing_the_deaf(void **state)
{
    struct live l = start_as(BOX_BUILDER, "deaf");
    (void)state;
    assert_true(ticks(l.channel, 1000) > 0);
    assert_false(box_pause(l.box));
    stop(&l);
}

static void after_the_end(void **state)
{
    struct err err = { 0 };
    struct box_result r = { 0 };
    struct live l = start("spin");
    (void)state;
    assert_int_equal(box_wait(l.box, 100, &r, &err), OK);
    assert_int_equal(r.end, BOX_TIMED_OUT);
    assert_true(box_pause(l.box)); /* no-ops */
    box_resume(l.box);
    assert_int_equal(box_wait(l.box, 100, &r, &err), OK); /* and the same answer's pid */
    stop(&l);
    box_destroy(NULL);
}

/* Is the process there and not a zombie? */
static bool lives(pid_t pid)
{
    own_arena a = { 0 };
    struct str stat;
    struct err err = { 0 };
    const char *path = arena_fmt(&a, "/proc/%d/stat", (int)pid);
    return file_read(&a, path, 4096, &stat, &err) == OK && strstr(stat.ptr, ") Z ") == NULL;
}

/* The owner is killed outright: its boxes must go with it. */
static void dies_with_owner(void **state)
{
    int told[2];
    pid_t boxed = 0;
    (void)state;
    assert_int_equal(pipe2(told, O_CLOEXEC), 0);
    pid_t owner = fork();
    if (owner == 0) {
        struct live l = start("spin");
        pid_t pid = box_pid(l.box);
        if (write(told[1], &pid, sizeof pid) != (ssize_t)sizeof pid)
            _exit(1);
        pause();
        _exit(1);
    }
    assert_int_equal(read(told[0], &boxed, sizeof boxed), sizeof boxed);
    assert_true(lives(boxed));
    kill(owner, SIGKILL);
    assert_int_equal(waitpid(owner, NULL, 0), owner);
    for (int i = 0; i < 300 && lives(boxed); i++)
        usleep(10000);
    assert_false(lives(boxed));
    close(told[0]);
    close(told[1]);
}

/* ---- the second run, and main ---- */

static const char *dirname_of(struct arena *a, const char *path)
{
    return arena_fmt(a, "%.*s", (int)(strrchr(path, '/') - path), path);
}

/* What others must not touch: a file, and a socket that listens. */
static int make_lair(struct arena *a)
{
    struct err err = { 0 };
    struct sockaddr_un at = { .sun_family = AF_UNIX }, abstract = { .sun_family = AF_UNIX };
    if (dir_temp(a, "/tmp", "ca-lair", &lair, &err) != OK || chmod(lair, 0777) != 0 ||
        file_write(path_join(a, lair, "file"), S("secret"), 0666, &err) != OK)
        return -1;
    snprintf(at.sun_path, sizeof at.sun_path, "%s/socket", lair);
    memcpy(abstract.sun_path, "\0ca-box-test", 13);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int other = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(fd, (struct sockaddr *)&at, sizeof at) != 0 || listen(fd, 1) != 0 ||
        chmod(at.sun_path, 0666) != 0)
        return -1;
    /* Taken by a test beside this one: that one listens, too. */
    if (bind(other, (struct sockaddr *)&abstract, sizeof at.sun_family + 12) == 0)
        return listen(other, 1);
    return 0;
}

static int lair_is_untouched(struct arena *a)
{
    struct err err = { 0 };
    struct str text;
    int bad = file_read(a, path_join(a, lair, "file"), 100, &text, &err) != OK ||
              !str_eq(text, S("secret")) || path_exists(path_join(a, lair, "new"));
    if (bad)
        print_message("the files outside were touched\n");
    return dir_remove(lair, &err) != OK || bad;
}

/* The program again, from a folder that anybody may read. */
static int again(const char *dir, const char *const *argv)
{
    own_arena a = { 0 };
    struct err err = { 0 };
    struct proc_spec spec = { .argv = argv, .dir = dir, .wall_ms = 100000, .out_max = 1 << 20 };
    struct proc_result p = { .status = 1 };
    if (proc_run(&a, &spec, &p, &err) != OK)
        print_message("%s\n", err.text);
    print_message("%.*s%.*s", STR_FMT(p.out), STR_FMT(p.err_out));
    if (p.status != 0)
        print_message("%s ended with %d\n", argv[0], p.status);
    return p.status != 0;
}

static int copy(struct arena *a, const char *from, const char *to)
{
    struct err err = { 0 };
    struct str bytes;
    if (file_read(a, from, 256 * MIB, &bytes, &err) == OK &&
        file_write(to, bytes, 0755, &err) == OK)
        return 0;
    print_message("%s\n", err.text);
    return 1;
}

static int other_ways(const char *self)
{
    static const char *const user[] = { "./test_box", "--once", NULL };
    own_arena a = { 0 };
    struct err err = { 0 };
    const char *dir = NULL;
    const char *box = arena_fmt(&a, "%s/container", dirname_of(&a, self));
    if (dir_temp(&a, "/tmp", "ca-box", &dir, &err) != OK || chmod(dir, 0755) != 0 ||
        copy(&a, self, path_join(&a, dir, "test_box")) != 0 ||
        copy(&a, box, path_join(&a, dir, "container")) != 0)
        return 1;
    box = path_join(&a, dir, "container");
    const char *in_container[] = { box, "./test_box", "--once", NULL };
    const char *no_landlock[] = { box, "--no-landlock", "./test_box", "--once", NULL };
    int bad = again(dir, in_container) | again(dir, no_landlock);
    if (geteuid() == 0 && proc_find(&a, "setpriv") != NULL) {
#define AS_USER "setpriv", "--reuid=1000", "--regid=1000", "--clear-groups"
        const char *plain[] = { AS_USER, user[0], user[1], NULL };
        const char *both[] = { AS_USER, box, user[0], user[1], NULL };
        bad |= again(dir, plain) | again(dir, both);
    }
    return dir_remove(dir, &err) != OK || bad;
}

/* Neither namespaces nor Landlock: refused, unless one says that the machine may be thrown away. */
static int without_walls(void)
{
    struct err err = { 0 }, again_err = { 0 };
    struct box_facts facts;
    box_choose(BOX_BEST);
    int bad = box_probe(&facts, &err) != ERR_MISSING || strstr(err.hint, "disposable") == NULL ||
              strstr(err.text, "Landlock") == NULL;
    box_choose(BOX_DISPOSABLE);
    bad |= box_probe(&facts, &again_err) != OK || facts.rung != 3 ||
           strstr(facts.detail, "no wall") == NULL;
    print_message("without namespaces and Landlock: %s\n  hint: %s\n  disposable: %s\n", err.text,
                  err.hint, bad ? again_err.text : facts.detail);
    return bad;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(walls),
        cmocka_unit_test(seen_from_inside),
        cmocka_unit_test(ends),
        cmocka_unit_test(limits),
        cmocka_unit_test(tmp_is_bounded),
        cmocka_unit_test(leaves_nothing),
        cmocka_unit_test(frozen_in_workspace),
        cmocka_unit_test(output_is_cut),
        cmocka_unit_test(cannot_start),
        cmocka_unit_test(held_processors),
        cmocka_unit_test(channel),
        cmocka_unit_test(pausing),
        cmocka_unit_test(pausing_the_restless),
        cmocka_unit_test(pausing_the_deaf),
        cmocka_unit_test(after_the_end),
        cmocka_unit_test(dies_with_owner),
    };
    if (argc == 5 && strcmp(argv[1], "--probe") == 0) {
        rung = argv[3][0] - '0';
        lair = argv[4];
        _exit(probe_main(argv[2])); /* a leak checker at exit would want ptrace */
    }
    own_mem char *self = realpath("/proc/self/exe", NULL);
    own_arena a = { 0 };
    struct err err = { 0 };
    struct box_facts facts = { 0 };
    mounts[0].from = self;
    box_choose(BOX_DISPOSABLE);
    if (self == NULL || box_probe(&facts, &err) != OK || make_lair(&a) != 0) {
        print_message("no box here: %s\n", err.text);
        return 1;
    }
    rung = facts.rung;
    print_message("uid %d, rung %d: %s\n", (int)getuid(), rung, facts.detail);
    int failed = rung == 3 ? without_walls() : cmocka_run_group_tests(tests, NULL, NULL);
    failed += lair_is_untouched(&a);
    bool once = argc == 2 && strcmp(argv[1], "--once") == 0;
    return failed + (once ? 0 : other_ways(self));
}
