/* Commands: what they say, where they end, what they cannot reach, and that nothing of them is
 * left. Everything runs again below rung 1 of the ladder, and as root as an ordinary user.
 */
#include "episode.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "sys/proc.h"

static int rung;

#define bash(e, command, want) bash_at((e), false, (command), (want))

static const char *bash_at(struct episode *e, bool failed, const char *command, const char *want)
{
    own_json args = json_pack("{s:s}", "command", command);
    own_mem char *text = json_dumps(args, 0);
    return expect(e, failed, "Bash", text, want);
}

static const char *at(struct episode *e, const char *name)
{
    return path_join(&e->a, tools_folder(e->t), name);
}

static void saying(void **state)
{
    static const struct {
        const char *command, *want;
    } rows[] = {
        { "echo hi; echo there >&2", "hi\nthere\n[exit code 0; " },
        { "exit 7", "[exit code 7; " },
        { "true", "[exit code 0; " },
        { "printf 'no end'", "no end\n[exit code 0; " },
        { "kill -ABRT $$; exec bash -c 'exit 3'", "[" },
        { "if", "syntax error|[exit code " },
        { "no_such_thing", "bash: line 1: no_such_thing: command not found\n[exit code 127" },
        { "cat", "[exit code 0; " }, /* no input, no waiting */
        { "printf '10%%\\r50%%\\r100%%\\ndone\\n'", "100%\ndone\n[" },
        { "printf '\\033[1;31mred\\033[0m \\033]0;title\\007x\\n'", "red x\n[" },
        { "printf 'a\\377b\\n'", "a\xef\xbf\xbd"
                                 "b\n" },
        { "printf 'a\\000b'", "[binary output, 3 bytes" },
        { "echo $PAGER $TERM; test -t 0 || echo no terminal", "cat dumb\nno terminal" },
        { "echo $# $0", "0 bash\n" },
        { "cat <<'X'\nline \"one\"\n'two'\nX", "line \"one\"\n'two'\n" },
        { "python3 -c 'print(chr(233))' 2>/dev/null || printf '\\303\\251\\n'", "\xc3\xa9\n" },
    };
    struct episode e = episode_start();
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        bash(&e, rows[i].command, rows[i].want);
    refuses(&e, "Bash", "{}", "Bash: 'command' is missing");
    refuses(&e, "Bash", "{\"command\": \"\"}", "'command' is empty");
    refuses(&e, "Bash", "{\"command\": \"x\", \"timeout\": 600001}", "wanted 1 to 600000");
    refuses(&e, "Bash", "{\"command\": [\"ls\"]}", "'command' is a list, wanted text");
    char *large = arena_new(&e.a, char, 100002);
    memset(large, 'x', 100001);
    refuses(&e, "Bash", arena_fmt(&e.a, "{\"command\": \"%s\"}", large),
            "has 100001 bytes, the most is 100000");
    memcpy(large, "echo ", 5);
    large[100000] = '\0';
    bash(&e, large, "... [");
    episode_end(&e);
}

static void folder_lasts(void **state)
{
    struct episode e = episode_start();
    (void)state;
    lay(&e, "sub/a.txt", "here");
    bash(&e, "cd sub; X=1; exit 3", arena_fmt(&e.a, "[exit code 3; |; now in %s]", at(&e, "sub")));
    bash(&e, "cat a.txt; echo \"($X)\"", "here()\n");
    bash(&e, "cd /; pwd", "/\n"); /* outside: not kept */
    bash(&e, "pwd", at(&e, "sub"));
    if (rung == 1)
        bash(&e, "cd /tool-output; pwd", "/tool-output\n[exit code 0"); /* nor this */
    bash(&e, "pwd", at(&e, "sub"));
    bash(&e, "cd ..; ln -s sub link; cd link", "[exit");
    bash(&e, "pwd", at(&e, "sub"));
    bash(&e, "cd ..; rm -r sub link", "; now in ");
    bash(&e, "mkdir gone; cd gone", "; now in ");
    bash(&e, "rmdir ../gone", "[exit code 0");
    bash(&e, "pwd", "is gone: this runs in");
    bash(&e, "trap - EXIT; exec true", "[exit code 0");
    bash(&e, "echo kept > /tmp/note; echo $TMPDIR >/dev/null", "[exit");
    if (rung == 1)
        bash(&e, "cat /tmp/note", "kept"); /* from call to call, until the end */
    bash(&e, "cat $TMPDIR/note || cat $HOME/note", rung == 1 ? "kept" : "");
    episode_end(&e);
}

/* Files that tools and commands write can be written by the others. */
static void both_write(void **state)
{
    struct episode e = episode_start();
    (void)state;
    does(&e, "Write", "{\"file_path\": \"a/x.txt\", \"content\": \"tool\"}", "Made");
    bash(&e, "cat a/x.txt; echo shell > a/x.txt; echo new > a/y.txt; chmod +x a/y.txt; ls a",
         "tool|x.txt\ny.txt");
    refuses(&e, "Edit",
            "{\"file_path\": \"a/x.txt\", \"old_string\": \"shell\", \"new_string\": \"z\"}",
            "has changed since");
    does(&e, "Read", "{\"file_path\": \"a/x.txt\"}", "shell");
    does(&e, "Edit",
         "{\"file_path\": \"a/x.txt\", \"old_string\": \"shell\", \"new_string\": \"z\"}",
         "1 place");
    does(&e, "Write", "{\"file_path\": \"a/b/c.txt\", \"content\": \"made later\"}", "Made");
    bash(&e,
         "echo + >> a/x.txt && echo + >> a/b/c.txt && sed -i s/+// a/x.txt a/b/c.txt && echo both",
         "both\n");
    does(&e, "Write", "{\"file_path\": \"a/b/e.txt\", \"content\": \"1\"}", "Made");
    bash(&e, "cat a/x.txt a/b/c.txt; rm -r a && echo removed", "z\n\nmade later\nremoved");
    refuses(&e, "Write", "{\"file_path\": \"none/../../x\", \"content\": \"\"}", "outside");
    episode_end(&e);
}

/* What the harness puts there as root becomes the commands', but for what lies outside. */
static void adopts(void **state)
{
    struct episode e = episode_start();
    struct err err = { 0 };
    struct stat st;
    const char *outside = path_join(&e.a, e.top, "outside");
    (void)state;
    bash(&e, "mkdir own; echo a > own/a", "[exit code 0");
    assert_int_equal(file_write(outside, S("x"), 0644, &err), OK);
    lay(&e, "put/deep/f", "from outside\n");
    assert_int_equal(link(outside, path_join(&e.a, e.dir, "put/hard")) |
                         symlink(outside, path_join(&e.a, e.dir, "put/soft")),
                     0);
    tools_adopt(e.t);
    bash(&e, "echo more >> put/deep/f && echo new > put/deep/g && cat put/deep/f",
         "from outside\nmore\n");
    assert_int_equal(stat(outside, &st), 0);
    assert_int_equal(st.st_uid, geteuid());
    episode_end(&e);
}

static void reaches_nothing(void **state)
{
    static const struct {
        const char *command, *want;
        int rung; /* only there; 0: everywhere */
    } rows[] = {
        { "cat /etc/passwd || echo no", "no\n", 1 },
        { "cat /root/x ~root/x 2>/dev/null; ls /home /root /var 2>/dev/null | wc -l", "0\n", 0 },
        { "(echo >/dev/tcp/127.0.0.1/22) 2>&1 && echo open", "[exit code 1", 0 },
        { "id -u | grep -c '^0$'", "0\n", 0 },
        { "ls /dev/nvidia* 2>/dev/null | wc -l", "0\n", 1 },
        { "touch /usr/x /bin/x /x 2>/dev/null || echo no", "no\n", 0 },
        { "unshare -r true 2>/dev/null || echo no", "no\n", 0 },
        { "ls -d /proc/[0-9]* | wc -l | grep -cE '^[1-9]$'", "1\n", 1 },
        { "mkdir d && mknod d/n c 1 3 2>/dev/null || echo no", "no\n", 0 },
    };
    struct episode e = episode_start();
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        if (rows[i].rung == 0 || rows[i].rung == rung)
            bash(&e, rows[i].command, rows[i].want);
    episode_end(&e);
}

static void frozen_files(void **state)
{
    static const char *const names[] = { "model.py", "sub/deep/ref.h", NULL };
    static const char *const commands[] = {
        "echo x > model.py",
        "rm -f model.py",
        "mv model.py other; echo mine > model.py",
        "sed -i s/task/x/ model.py",
        "chmod 666 model.py; echo x >> model.py",
        "ln -f model.py hard; echo x > hard",
        "rm -rf sub",
        "mv sub sub2; mkdir -p sub/deep; echo mine > sub/deep/ref.h",
        "mv sub/deep sub/deep2",
        "rm -rf sub/deep; ln -s / sub/deep",
        "truncate -s 0 sub/deep/ref.h",
        "python3 -c 'open(\"model.py\", \"w\").write(\"x\")'",
    };
    struct episode e = episode_new();
    struct err err = { 0 };
    (void)state;
    lay(&e, "model.py", "task\n");
    lay(&e, "sub/deep/ref.h", "ref\n");
    assert_int_equal(chmod(path_join(&e.a, e.dir, "model.py"), 0444), 0);
    episode_open(&e, (struct tools_spec){ .frozen = names });
    for (size_t i = 0; i < COUNT(commands); i++) {
        const char *said =
            bash(&e, arena_fmt(&e.a, "(%s) 2>/dev/null; true", commands[i]), "[exit code 0");
        if (rung == 1 && strstr(said, "put back") != NULL)
            fail_msg("%s changed a frozen file", commands[i]);
        assert_int_equal(tools_frozen_check(e.t, &err), OK);
        holds(&e, "model.py", "task\n");
        holds(&e, "sub/deep/ref.h", "ref\n");
    }
    bash(&e, "cat model.py sub/deep/ref.h", "task\nref\n");
    bash(&e, "echo mine > sub/deep/own.c && echo other > sub/x && cat sub/deep/own.c", "mine\n");
    if (rung > 1)
        bash(&e, "rm -f model.py; echo x > model.py",
             "frozen files were changed, and put back: model.py");
    bash(&e, "cat model.py", "task\n");
    episode_end(&e);
}

/* ---- time and memory ---- */

/* Processes of this test's commands that are left: all of them sleep for so many seconds. */
static int sleepers(const char *seconds)
{
    own_arena a = { 0 };
    DIR *d = opendir("/proc");
    int n = 0;
    for (struct dirent *e = d ? readdir(d) : NULL; e != NULL; e = readdir(d)) {
        struct str text;
        struct err err = { 0 };
        const char *path = arena_fmt(&a, "/proc/%s/cmdline", e->d_name);
        if (e->d_name[0] > '9' || e->d_name[0] < '0' ||
            file_read(&a, path, 65536, &text, &err) != OK)
            continue;
        struct str wanted = str_from(arena_fmt(&a, "sleep%c%s", '!', seconds));
        n += text.len == wanted.len + 1 && memcmp(text.ptr, "sleep", 6) == 0 &&
             memcmp(text.ptr + 6, seconds, strlen(seconds)) == 0;
    }
    closedir(d);
    return n;
}

/* Of this process alone: tests run beside each other. */
static const char *own_seconds(struct episode *e)
{
    return arena_fmt(&e->a, "77%07d", (int)getpid());
}

/* They start in their own time. */
static void await_sleepers(const char *seconds, int n)
{
    for (int i = 0; i < 1000 && sleepers(seconds) < n; i++)
        poll(NULL, 0, 10);
    assert_true(sleepers(seconds) >= n);
}

/* The format's one number: for how long. */
#define RUNAWAYS                                                                       \
    "export s=%s; sleep $s & setsid sleep $s & nohup sleep $s >/dev/null 2>&1 & "      \
    "(setsid bash -c 'sleep $s & sleep $s' &) ; (sleep $s & sleep $s &) & "            \
    "(trap '' TERM HUP INT; sleep $s) & disown -a; "                                   \
    "python3 -c 'import os\nif os.fork() == 0:\n os.setsid()\n if os.fork() == 0:\n  " \
    "os.execlp(\"sleep\", \"sleep\", os.environ[\"s\"])' & "

static void leaves_nobody(void **state)
{
    struct episode e = episode_start();
    const char *s = own_seconds(&e);
    (void)state;
    bash(&e, arena_fmt(&e.a, RUNAWAYS "echo gone", s), "gone\n[exit code 0");
    assert_int_equal(sleepers(s), 0);
    /* The pipe is held open by a daemon: the end of the command is the end. */
    bash(&e, arena_fmt(&e.a, "setsid sleep %s & exit 5", s), "[exit code 5");
    assert_int_equal(sleepers(s), 0);
    episode_end(&e);
}

static void timeouts(void **state)
{
    struct episode e = episode_start();
    const char *s = own_seconds(&e);
    (void)state;
    own_json args =
        json_pack("{s:s, s:i}", "command",
                  arena_fmt(&e.a, RUNAWAYS "echo started; cd /; sleep $s", s), "timeout", 1500);
    own_mem char *text = json_dumps(args, 0);
    refuses(&e, "Bash", text, "started\n[killed after |: the timeout. Give more");
    assert_int_equal(sleepers(s), 0);
    refuses(&e, "Bash", "{\"command\": \"while :; do :; done\", \"timeout\": 300}",
            "[killed after");
    bash(&e, "pwd", tools_folder(e.t));
    episode_end(&e);
}

static void bounds(void **state)
{
    struct episode e = episode_new();
    (void)state;
    episode_open(
        &e, (struct tools_spec){ .mem_bytes = 256 << 20, .tasks_max = 40, .file_bytes = 1 << 20 });
    bash(&e, "head -c 3000000 /dev/zero > large; stat -c %s large", "1048576\n");
    bash(&e,
         "python3 -c 'import os, time\nn = 0\ntry:\n while n < 200:\n  if os.fork() == 0:\n   "
         "time.sleep(20)\n   os._exit(0)\n  n += 1\nexcept OSError:\n pass\nprint(n < 190)'",
         "True\n");
    bash_at(&e, true, "python3 -c 'x = b\"x\" * (900 << 20)'; echo after",
            "[out of memory: something was killed; ");
    bash(&e, "echo fine", "fine");
    episode_end(&e);
}

static const char *spill_named(struct episode *e, const char *said)
{
    const char *from = strstr(said, " is in ");
    assert_non_null(from);
    const char *end = strstr(from, ", for Read");
    assert_non_null(end);
    return arena_fmt(&e->a, "%.*s", (int)(end - from - 7), from + 7);
}

static void floods(void **state)
{
    struct episode e = episode_start();
    (void)state;
    const char *said =
        bash(&e, "seq 20000",
             "1\n2\n3\n|bytes left out; the whole output is in |19999\n20000\n[exit code 0");
    assert_true(strlen(said) < 31000);
    const char *spill = spill_named(&e, said);
    does(&e, "Read",
         arena_fmt(&e.a, "{\"file_path\": \"%s\", \"offset\": 10000, \"limit\": 1}", spill),
         " 10000\t10000\n");
    does(&e, "Grep",
         arena_fmt(&e.a, "{\"pattern\": \"^1234.$\", \"path\": \"%s\", \"output_mode\": \"count\"}",
                   spill),
         arena_fmt(&e.a, "%s:10", spill));
    bash(&e, arena_fmt(&e.a, "tail -n 1 %s; echo x 2>/dev/null >> %s || echo no", spill, spill),
         "20000\nno\n");
    refuses(&e, "Write", arena_fmt(&e.a, "{\"file_path\": \"%s\", \"content\": \"\"}", spill),
            "can be read, not written");
    /* Without end, and more than the spill keeps. */
    said = expect(&e, true, "Bash", "{\"command\": \"yes\", \"timeout\": 2000}",
                  "y\ny\n|its beginning is in|[killed after");
    assert_true(strlen(said) < 31000);
    struct stat st;
    does(&e, "Bash", arena_fmt(&e.a, "{\"command\": \"stat -c %%s %s\"}", spill_named(&e, said)),
         "8388608\n");
    assert_int_equal(stat(e.dir, &st), 0);
    said = bash(&e, "head -c 100000 /dev/zero | tr '\\0' x", "more bytes in this line]");
    assert_true(strlen(said) < 6000);
    said = bash(&e, "head -c 100000 /dev/zero", "[binary output, 100000 bytes");
    assert_true(strlen(said) < 1000);
    for (int i = 0; i < 20; i++)
        bash(&e, "seq 9000", "left out");
    refuses(&e, "Read", arena_fmt(&e.a, "{\"file_path\": \"%s\"}", spill),
            "there is no"); /* the oldest went */
    episode_end(&e);
}

/* ---- in steps, and in the background ---- */

static void wait_step(struct tool_call *c)
{
    struct pollfd fd[TOOL_CALL_FDS];
    size_t n = tool_call_fds(c, fd);
    int64_t left = tool_call_until(c) - clock_ms();
    poll(fd, n, (int)(left < 1000 ? left > 0 ? left : 0 : 1000));
    tool_call_step(c);
}

/* Many episodes side by side in one thread. */
static void side_by_side(void **state)
{
#define EPISODES 6
    struct episode e[EPISODES];
    struct tool_call *c[EPISODES];
    json_t *args[EPISODES];
    (void)state;
    for (int i = 0; i < EPISODES; i++) {
        e[i] = episode_start();
        args[i] = json_pack("{s:s}", "command",
                            arena_fmt(&e[i].a, "for i in 1 2 3; do echo %d; sleep 0.1; done", i));
        c[i] = tool_call_begin(e[i].t, &e[i].a, S("Bash"), args[i]);
        assert_false(tool_call_done(c[i]));
    }
    struct tool_call *second = tool_call_begin(e[0].t, &e[0].a, S("Read"), NULL);
    assert_true(tool_call_done(second));
    struct tool_result r = tool_call_end(second);
    assert_true(r.failed);
    assert_non_null(strstr(r.text.ptr, "another call of this session still runs"));
    for (int i = 0; i < EPISODES; i++) {
        while (!tool_call_done(c[i]))
            wait_step(c[i]);
        r = tool_call_end(c[i]);
        assert_false(r.failed);
        assert_non_null(
            strstr(r.text.ptr, arena_fmt(&e[i].a, "%d\n%d\n%d\n[exit code 0", i, i, i)));
        json_decref(args[i]);
        bash(&e[i], "echo again", "again\n");
        episode_end(&e[i]);
    }
}

static void given_up(void **state)
{
    struct episode e = episode_start();
    const char *s = own_seconds(&e);
    (void)state;
    own_json args = json_pack("{s:s}", "command", arena_fmt(&e.a, RUNAWAYS "echo up; sleep $s", s));
    struct tool_call *c = tool_call_begin(e.t, &e.a, S("Bash"), args);
    wait_step(c);
    struct tool_result r = tool_call_end(c);
    assert_true(r.failed);
    assert_non_null(strstr(r.text.ptr, "Bash was stopped before its end"));
    assert_int_equal(sleepers(s), 0);
    bash(&e, "echo again", "again\n");
    episode_end(&e);
}

/* A session that is closed while a call runs takes it along. */
static void closed_during_a_call(void **state)
{
    struct episode e = episode_start();
    const char *s = own_seconds(&e);
    (void)state;
    own_json args = json_pack("{s:s}", "command", arena_fmt(&e.a, RUNAWAYS "echo up; sleep $s", s));
    struct tool_call *c = tool_call_begin(e.t, &e.a, S("Bash"), args);
    assert_false(tool_call_done(c));
    await_sleepers(s, 2);
    tools_close(e.t);
    e.t = NULL;
    assert_int_equal(sleepers(s), 0);
    episode_end(&e);
}

static void behind(struct episode *e, const char *command, const char *want)
{
    own_json args = json_pack("{s:s, s:b}", "command", command, "run_in_background", 1);
    own_mem char *text = json_dumps(args, 0);
    does(e, "Bash", text, want);
}

/* Asks until all of `want` is there. */
static const char *output_until(struct episode *e, const char *args, const char *want)
{
    const char *said = "";
    for (int64_t until = clock_ms() + 20000; clock_ms() < until;) {
        said = call(e, "BashOutput", args);
        if (strstr(said, want) != NULL)
            return said;
        struct pollfd fd[2 * TOOLS_SHELLS_MAX];
        size_t n = tools_fds(e->t, fd);
        poll(fd, n, 200);
        tools_pump(e->t);
    }
    fail_msg("BashOutput %s never said '%s', last '%s'", args, want, said);
    return said;
}

static void background(void **state)
{
    struct episode e = episode_start();
    const char *s = own_seconds(&e);
    (void)state;
    refuses(&e, "BashOutput", "{\"bash_id\": \"bash_1\"}",
            "there is no background command 'bash_1'|none was started");
    behind(&e, "echo one; while ! test -e go; do sleep 0.05; done; echo two; echo three; exit 4",
           "as bash_1");
    output_until(&e, "{\"bash_id\": \"bash_1\"}", "one\n[running for ");
    does(&e, "BashOutput", "{\"bash_id\": \"bash_1\"}", "[nothing new; running for ");
    refuses(&e, "BashOutput", "{\"bash_id\": \"bash_9\"}",
            "there is no background command 'bash_9'|bash_1 (running for");
    assert_non_null(
        strstr(tools_reminder(e.t, &e.a).ptr, "Background commands:\nbash_1 (running for"));
    bash(&e, ": > go", "[exit code 0");
    for (int k = 0;
         k < 1000 && strstr(tools_reminder(e.t, &e.a).ptr, "bash_1 (exit code 4") == NULL; k++) {
        poll(NULL, 0, 10);
        tools_pump(e.t);
    }
    refuses(&e, "BashOutput", "{\"bash_id\": \"bash_1\", \"filter\": \"(\"}",
            "filter: the pattern is wrong at character");
    const char *said = does(&e, "BashOutput", "{\"bash_id\": \"bash_1\", \"filter\": \"^th\"}",
                            "three\n[exit code 4");
    assert_null(strstr(said, "two"));
    behind(&e, arena_fmt(&e.a, RUNAWAYS "echo up; sleep $s", s), "as bash_2");
    output_until(&e, "{\"bash_id\": \"bash_2\"}", "up\n");
    await_sleepers(s, 4);
    refuses(&e, "KillShell", "{\"shell_id\": \"2\"}", "there is no background command '2'");
    does(&e, "KillShell", "{\"shell_id\": \"bash_2\"}", "[bash_2 was running: killed after");
    assert_int_equal(sleepers(s), 0);
    refuses(&e, "KillShell", "{\"shell_id\": \"bash_2\"}", "there is no background command");
    does(&e, "KillShell", "{\"shell_id\": \"bash_1\"}", "bash_1 had ended: exit code 4");
    behind(&e, arena_fmt(&e.a, RUNAWAYS "echo up; sleep $s", s), "as bash_3");
    output_until(&e, "{\"bash_id\": \"bash_3\"}", "up\n");
    own_mem char *kept = strdup(s);
    await_sleepers(s, 4);
    episode_end(&e); /* with the session they go */
    assert_int_equal(sleepers(kept), 0);
}

static void background_is_bounded(void **state)
{
    struct episode e = episode_start();
    const char *s = own_seconds(&e);
    (void)state;
    for (int i = 0; i < TOOLS_SHELLS_MAX; i++)
        behind(&e, arena_fmt(&e.a, "sleep %s", s), arena_fmt(&e.a, "bash_%d", i + 1));
    refuses(&e, "Bash", "{\"command\": \"sleep 1\", \"run_in_background\": true}",
            "8 commands run in the background|KillShell\nbash_1 (running");
    assert_int_equal(tools_running(e.t), TOOLS_SHELLS_MAX);
    does(&e, "KillShell", "{\"shell_id\": \"bash_3\"}", "killed");
    assert_int_equal(tools_running(e.t), TOOLS_SHELLS_MAX - 1);
    behind(&e, "seq 2000000; echo end", "as bash_9");
    const char *said = output_until(
        &e, "{\"bash_id\": \"bash_9\", \"filter\": \"lost|^end|^1999999$\"}", "exit code 0");
    assert_true(strlen(said) < 31000);
    await_sleepers(s, 7);
    tools_close(e.t);
    e.t = NULL;
    assert_int_equal(sleepers(s), 0);
    episode_end(&e);
}

/* A command that says much in the background goes on while other calls are made. */
static void goes_on_behind(void **state)
{
    struct episode e = episode_start();
    (void)state;
    behind(&e, "seq 600000; : > ended", "as bash_1"); /* four pipes full */
    for (int i = 0; i < 1000 && held(&e, "ended") == NULL; i++) {
        poll(NULL, 0, 10);
        does(&e, "Glob", "{\"pattern\": \"*\"}", "");
    }
    holds(&e, "ended", "");
    does(&e, "BashOutput", "{\"bash_id\": \"bash_1\"}", "bytes are lost|599999\n600000\n");
    episode_end(&e);
}

/* A command turns a folder into a link and back all the time: nothing outside is read or written.
 */
static void links_that_come_and_go(void **state)
{
    struct episode e = episode_start();
    struct err err = { 0 };
    struct str *names;
    size_t n, wrote = 0;
    const char *outside = path_join(&e.a, e.top, "outside");
    (void)state;
    assert_int_equal(mkdir(outside, 0777), 0);
    assert_int_equal(file_write(path_join(&e.a, outside, "f"), S("secret"), 0666, &err), OK);
    behind(
        &e,
        "while :; do ln -s ../outside d; rm d; mkdir d; echo mine > d/f; rm -r d; done 2>/dev/null",
        "bash_1");
    for (int i = 0; i < 1500; i++) {
        struct arena_mark mark = arena_mark(&e.a);
        const char *args = arena_fmt(&e.a, "{\"file_path\": \"d/new%d\", \"content\": \"x\"}", i);
        call(&e, "Write", args);
        wrote += !e.last.failed;
        assert_null(strstr(call(&e, "Read", "{\"file_path\": \"d/f\"}"), "secret"));
        assert_null(strstr(
            call(&e, "Grep", "{\"pattern\": \"e\", \"path\": \"d\", \"output_mode\": \"content\"}"),
            "secret"));
        assert_null(strstr(call(&e, "Glob", "{\"pattern\": \"**\"}"), "outside"));
        tools_adopt(e.t);
        arena_rewind(&e.a, mark);
    }
    does(&e, "KillShell", "{\"shell_id\": \"bash_1\"}", "was running");
    assert_int_equal(dir_list(&e.a, outside, NULL, &names, &n, &err), OK);
    assert_int_equal(n, 1);
    assert_true(wrote > 0);
    episode_end(&e);
}

/* The owner is killed outright: its commands must go, too. */
static void dies_with_owner(void **state)
{
    struct episode e = episode_new();
    const char *s = own_seconds(&e);
    int told[2];
    char byte;
    (void)state;
    assert_int_equal(pipe2(told, O_CLOEXEC), 0);
    pid_t owner = fork();
    if (owner == 0) {
        episode_open(&e, (struct tools_spec){ 0 });
        behind(&e, arena_fmt(&e.a, RUNAWAYS "echo up; sleep $s", s), "bash_1");
        output_until(&e, "{\"bash_id\": \"bash_1\"}", "up");
        if (write(told[1], "!", 1) != 1)
            _exit(1);
        pause();
        _exit(1);
    }
    assert_int_equal(read(told[0], &byte, 1), 1);
    await_sleepers(s, 4);
    kill(owner, SIGKILL);
    assert_int_equal(waitpid(owner, NULL, 0), owner);
    for (int i = 0; i < 500 && sleepers(s) > 0; i++)
        poll(NULL, 0, 10);
    assert_int_equal(sleepers(s), 0);
    close(told[0]);
    close(told[1]);
    episode_end(&e);
}

/* ---- the other ways, and main ---- */

static int copy(struct arena *a, const char *from, const char *to)
{
    struct err err = { 0 };
    struct str bytes;
    if (file_read(a, from, (size_t)256 << 20, &bytes, &err) == OK &&
        file_write(to, bytes, 0755, &err) == OK)
        return 0;
    print_message("%s\n", err.text);
    return 1;
}

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

static int other_ways(const char *self)
{
    own_arena a = { 0 };
    struct err err = { 0 };
    const char *dir = NULL;
    const char *beside = arena_fmt(&a, "%.*s/container", (int)(strrchr(self, '/') - self), self);
    if (dir_temp(&a, "/tmp", "ca-tools", &dir, &err) != OK || chmod(dir, 0755) != 0 ||
        copy(&a, self, path_join(&a, dir, "test_bash")) != 0 ||
        copy(&a, beside, path_join(&a, dir, "container")) != 0)
        return 1;
    const char *box = path_join(&a, dir, "container");
    const char *in_container[] = { box, "./test_bash", "--once", NULL };
    int bad = again(dir, in_container);
    if (geteuid() == 0 && proc_find(&a, "setpriv") != NULL) {
        const char *user[] = {
            "setpriv", "--reuid=1000", "--regid=1000", "--clear-groups", "./test_bash", "--once",
            NULL
        };
        bad |= again(dir, user);
    }
    return dir_remove(dir, &err) != OK || bad;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(saying),
        cmocka_unit_test(folder_lasts),
        cmocka_unit_test(both_write),
        cmocka_unit_test(reaches_nothing),
        cmocka_unit_test(adopts),
        cmocka_unit_test(closed_during_a_call),
        cmocka_unit_test(frozen_files),
        cmocka_unit_test(leaves_nobody),
        cmocka_unit_test(timeouts),
        cmocka_unit_test(bounds),
        cmocka_unit_test(floods),
        cmocka_unit_test(side_by_side),
        cmocka_unit_test(given_up),
        cmocka_unit_test(background),
        cmocka_unit_test(background_is_bounded),
        cmocka_unit_test(dies_with_owner),
        cmocka_unit_test(goes_on_behind),
        cmocka_unit_test(links_that_come_and_go),
    };
    own_mem char *self = realpath(argv[0], NULL);
    struct box_facts facts;
    struct err err = { 0 };
    if (box_probe(&facts, &err) != OK) {
        print_message("%s\n", err.text);
        return 1;
    }
    rung = facts.rung;
    print_message("uid %d, rung %d\n", (int)geteuid(), rung);
    bool once = argc > 1 && strcmp(argv[1], "--once") == 0;
    int bad = cmocka_run_group_tests(tests, NULL, NULL);
    return bad != 0 || (!once && other_ways(self) != 0);
}
