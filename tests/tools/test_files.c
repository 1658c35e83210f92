/* Read, Write, Edit, MultiEdit, TodoWrite: what they do and what they refuse; paths that lead
 * out; files changed behind the model's back; frozen files. No command runs here. */
#include "episode.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

static const char *long_text(struct arena *a, size_t lines)
{
    struct buf b = { .arena = a, .max = 64 << 20 };
    for (size_t i = 1; i <= lines; i++)
        buf_addf(&b, "line %zu\n", i);
    return b.ptr;
}

static void reading(void **state)
{
    struct episode e = episode_start();
    (void)state;
    lay(&e, "a.txt", "one\n\ttwo\n\nlast");
    lay(&e, "empty", "");
    lay(&e, "dos.txt", "x\r\ny\r\n");
    lay(&e, "sub/b.c", "int b;\n");
    lay(&e, "long", long_text(&e.a, 5000));
    const char *text = does(&e, "Read", "{\"file_path\": \"a.txt\"}", "");
    assert_string_equal(text, "     1\tone\n     2\t\ttwo\n     3\t\n     4\tlast\n");
    assert_string_equal(does(&e, "Read", "{\"file_path\": \"./sub/../sub//b.c\"}", ""),
                        "     1\tint b;\n");
    const char *whole = arena_fmt(&e.a, "{\"file_path\": \"%s/sub/b.c\"}", tools_folder(e.t));
    does(&e, "Read", whole, "int b;");
    does(&e, "Read", arena_fmt(&e.a, "{\"file_path\": \"%s/a.txt\"}", e.dir), "last");
    assert_string_equal(
        does(&e, "Read", "{\"file_path\": \"a.txt\", \"offset\": 2, \"limit\": 1}", ""),
        "     2\t\ttwo\n[lines 2 to 2 of 4; go on with offset 3]\n");
    does(&e, "Read", "{\"file_path\": \"a.txt\", \"offset\": 4.0}", "     4\tlast\n");
    does(&e, "Read", "{\"file_path\": \"a.txt\", \"offset\": 9, \"limit\": null}",
         "[the file has 4 lines, offset 9 is past its end]");
    does(&e, "Read", "{\"file_path\": \"empty\"}", "[the file is empty]");
    does(&e, "Read", "{\"file_path\": \"dos.txt\"}",
         "     1\tx\n     2\ty\n[its lines end in CRLF");
    text = does(&e, "Read", "{\"file_path\": \"long\"}",
                "  2000\tline 2000\n|[lines 1 to 2000 of 5000; go on with offset 2001]");
    assert_null(strstr(text, "line 2001"));
    does(&e, "Read", "{\"file_path\": \"long\", \"offset\": 4999}",
         "  4999\tline 4999\n  5000\tline 5000\n");
    episode_end(&e);
}

static void reading_what_is_odd(void **state)
{
    struct episode e = episode_start();
    struct err err = { 0 };
    (void)state;
    char *wide = arena_new(&e.a, char, 10001);
    memset(wide, 'w', 10000);
    lay(&e, "wide", wide);
    lay(&e, "odd", "a\xff\x62 \xed\xa0\x80 \x1b[31mred\x07\n\xc3\xa9\n");
    assert_int_equal(file_write(path_join(&e.a, e.dir, "bin"),
                                (struct str){ "\x7f"
                                              "ELF\0\0",
                                              6 },
                                0644, &err),
                     OK);
    const char *text =
        does(&e, "Read", "{\"file_path\": \"wide\"}", "... [8000 more bytes in this line]");
    assert_true(strlen(text) < 2100);
    does(&e, "Read", "{\"file_path\": \"odd\"}",
         "a\xef\xbf\xbd"
         "b \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd \xef\xbf\xbd[31mred\xef\xbf\xbd\n|\xc3\xa9");
    refuses(&e, "Read", "{\"file_path\": \"bin\"}", "'bin' is a binary file of 6 bytes|xxd");
    /* A result has its bounds, however long the lines are. */
    struct buf b = { .arena = &e.a, .max = 16 << 20 };
    for (int i = 0; i < 1000; i++) {
        buf_addz(&b, wide);
        buf_addz(&b, "\n");
    }
    lay(&e, "wider", b.ptr);
    text = does(&e, "Read", "{\"file_path\": \"wider\"}", "of 1000; go on with offset");
    assert_true(strlen(text) < 70000);
    assert_int_equal(truncate(path_join(&e.a, e.dir, "wider"), 21 << 20), 0);
    refuses(&e, "Read", "{\"file_path\": \"wider\"}", "has 22020096 bytes, the most is|head, tail");
    episode_end(&e);
}

/* Each of these stays inside, or is refused at once. */
static void paths(void **state)
{
    static const struct {
        const char *path, *want;
    } rows[] = {
        { "../secret", "outside the workspace|paths are relative to" },
        { "a/../../secret", "outside" },
        { "/etc/passwd", "outside" },
        { "/proc/self/environ", "outside" },
        { "/workspace/../etc/passwd", "outside" },
        { "/workspacex", "outside" },
        { "", "'file_path' is empty" },
        { "out_abs", "symbolic link leads out" },
        { "out_rel", "symbolic link leads out" },
        { "out_dir/secret", "symbolic link leads out" },
        { "loop", "symbolic link leads out of the workspace, or back to itself" },
        { "dev", "symbolic link leads out" },
        { "fd", "symbolic link leads out" },
        { "fifo", "'fifo' is a pipe, not a file" },
        { "socket", "'socket' is a socket, not a file" },
        { "sub", "'sub' is a folder" },
        { ".", "'.' is a folder" },
        { "a.txt/x", "a part of the path is a file" },
        { "none.txt", "there is no 'none.txt'|the workspace holds:|a.txt" },
        { "sub/none.txt", "there is no 'sub/none.txt'|sub holds: b.txt" },
        { "no/such/x", "there is no folder 'no/such'" },
    };
    struct episode e = episode_start();
    struct err err = { 0 };
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    (void)state;
    lay(&e, "a.txt", "a");
    lay(&e, "sub/b.txt", "b");
    assert_int_equal(file_write(path_join(&e.a, e.top, "secret"), S("secret"), 0644, &err), OK);
    assert_int_equal(chdir(e.dir), 0);
    assert_int_equal(symlink("/etc/passwd", "out_abs") | symlink("../secret", "out_rel") |
                         symlink("..", "out_dir") | symlink("loop", "loop") |
                         symlink("/dev/zero", "dev") | symlink("/proc/self/fd/0", "fd") |
                         symlink("sub/b.txt", "in") | symlink("sub", "dir") | mkfifo("fifo", 0600),
                     0);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memcpy(at.sun_path, "socket", 7);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    close(fd);
    assert_int_equal(chdir("/"), 0);
    for (size_t i = 0; i < COUNT(rows); i++) {
        own_json args = json_pack("{s:s}", "file_path", rows[i].path);
        own_mem char *text = json_dumps(args, 0);
        const char *said = refuses(&e, "Read", text, rows[i].want);
        assert_null(strstr(said, "root:"));
        json_object_set_new(args, "content", json_string("mine"));
        own_mem char *write = json_dumps(args, 0);
        if (strncmp(rows[i].path, "no", 2) != 0 && strncmp(rows[i].path, "sub/no", 6) != 0)
            refuses(&e, "Write", write, "");
    }
    does(&e, "Read", "{\"file_path\": \"in\"}", "     1\tb");
    does(&e, "Read", "{\"file_path\": \"dir/b.txt\"}", "     1\tb");
    holds(&e, "sub/b.txt", "b");
    assert_string_equal(held(&e, "../secret"), "secret");
    episode_end(&e);
}

/* No link is written through, at the end of a path or on the way. */
static void links_are_not_written(void **state)
{
    struct episode e = episode_start();
    (void)state;
    lay(&e, "sub/b.txt", "b");
    assert_int_equal(symlink("sub/b.txt", path_join(&e.a, e.dir, "in")) |
                         symlink("sub", path_join(&e.a, e.dir, "dir")),
                     0);
    does(&e, "Read", "{\"file_path\": \"in\"}", "b");
    does(&e, "Read", "{\"file_path\": \"dir/b.txt\"}", "b");
    refuses(&e, "Write", "{\"file_path\": \"in\", \"content\": \"x\"}",
            "'in' is a link, not a file");
    refuses(&e, "Edit", "{\"file_path\": \"in\", \"old_string\": \"b\", \"new_string\": \"c\"}",
            "is a link");
    refuses(&e, "Write", "{\"file_path\": \"dir/b.txt\", \"content\": \"x\"}", "symbolic link");
    refuses(&e, "Write", "{\"file_path\": \"dir/new.txt\", \"content\": \"x\"}", "symbolic link");
    holds(&e, "sub/b.txt", "b");
    assert_null(held(&e, "sub/new.txt"));
    episode_end(&e);
}

static mode_t mode_of(struct episode *e, const char *name)
{
    struct stat st = { 0 };
    assert_int_equal(lstat(path_join(&e->a, e->dir, name), &st), 0);
    return st.st_mode & 07777;
}

static void writing(void **state)
{
    struct episode e = episode_start();
    (void)state;
    does(&e, "Write", "{\"file_path\": \"deep/er/new.c\", \"content\": \"int a;\\nint b;\"}",
         "Made 'deep/er/new.c': 2 lines, 13 bytes.");
    holds(&e, "deep/er/new.c", "int a;\nint b;");
    assert_int_equal(mode_of(&e, "deep/er/new.c"), 0644);
    does(&e, "Write", "{\"file_path\": \"deep/er/new.c\", \"content\": \"\"}",
         "Wrote|0 lines, 0 bytes");
    lay(&e, "run.sh", "old\n");
    assert_int_equal(chmod(path_join(&e.a, e.dir, "run.sh"), 0755), 0);
    refuses(&e, "Write", "{\"file_path\": \"run.sh\", \"content\": \"new\"}",
            "'run.sh' exists and was not read yet|Read it first");
    holds(&e, "run.sh", "old\n");
    does(&e, "Read", "{\"file_path\": \"run.sh\", \"limit\": 1}", "old");
    does(&e, "Write", "{\"file_path\": \"run.sh\", \"content\": \"new\"}", "Wrote 'run.sh'");
    holds(&e, "run.sh", "new");
    assert_int_equal(mode_of(&e, "run.sh"), 0755);
    lay(&e, "run.sh", "behind your back");
    refuses(&e, "Write", "{\"file_path\": \"run.sh\", \"content\": \"x\"}",
            "has changed since it was read|Read it again");
    refuses(&e, "Edit",
            "{\"file_path\": \"run.sh\", \"old_string\": \"your\", \"new_string\": \"my\"}",
            "has changed since");
    holds(&e, "run.sh", "behind your back");
    lay(&e, "run.sh", "new"); /* by contents, not by time */
    does(&e, "Edit",
         "{\"file_path\": \"run.sh\", \"old_string\": \"new\", \"new_string\": \"newer\"}",
         "1 place");
    episode_end(&e);
}

static void no_litter(struct episode *e)
{
    struct err err = { 0 };
    struct str *names;
    size_t n;
    assert_int_equal(dir_list(&e->a, e->dir, NULL, &names, &n, &err), OK);
    for (size_t i = 0; i < n; i++)
        assert_null(strstr(names[i].ptr, ".part-"));
}

static void editing(void **state)
{
    struct episode e = episode_start();
    (void)state;
    lay(&e, "k.cu", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\n");
    refuses(&e, "Edit", "{\"file_path\": \"k.cu\", \"old_string\": \"f\", \"new_string\": \"F\"}",
            "was not read");
    does(&e, "Read", "{\"file_path\": \"k.cu\"}", "     6\tf\n");
    const char *text =
        does(&e, "Edit",
             "{\"file_path\": \"k.cu\", \"old_string\": \"f\\n\", \"new_string\": \"F1\\nF2\\n\"}",
             "Changed 'k.cu' in 1 place:|     6\tF1\n     7\tF2\n     8\tg\n");
    assert_null(strstr(text, "     1\ta"));
    holds(&e, "k.cu", "a\nb\nc\nd\ne\nF1\nF2\ng\nh\ni\nj\nk\n");
    refuses(&e, "Edit", "{\"file_path\": \"k.cu\", \"old_string\": \"F\", \"new_string\": \"G\"}",
            "'k.cu': old_string was found 2 times, in lines 6, 7|replace_all");
    does(&e, "Edit",
         "{\"file_path\": \"k.cu\", \"old_string\": \"F\", \"new_string\": \"G\", \"replace_all\": "
         "true}",
         "in 2 places");
    refuses(&e, "Edit", "{\"file_path\": \"k.cu\", \"old_string\": \"zzz\", \"new_string\": \"G\"}",
            "not found");
    refuses(&e, "Edit", "{\"file_path\": \"k.cu\", \"old_string\": \"\", \"new_string\": \"G\"}",
            "old_string is empty");
    refuses(&e, "Edit", "{\"file_path\": \"new.cu\", \"old_string\": \"a\", \"new_string\": \"G\"}",
            "there is no 'new.cu'|holds: k.cu");
    does(&e, "Edit", "{\"file_path\": \"new.cu\", \"old_string\": \"\", \"new_string\": \"G\"}",
         "Made 'new.cu'");
    holds(&e, "new.cu", "G");
    lay(&e, "dos.txt", "x\r\ny\r\n");
    does(&e, "Read", "{\"file_path\": \"dos.txt\"}", "CRLF");
    does(&e, "Edit",
         "{\"file_path\": \"dos.txt\", \"old_string\": \"x\\ny\", \"new_string\": \"p\\nq\\nr\"}",
         "p\n");
    holds(&e, "dos.txt", "p\r\nq\r\nr\r\n");
    no_litter(&e);
    episode_end(&e);
}

static void editing_many(void **state)
{
    struct episode e = episode_start();
    (void)state;
    lay(&e, "m.c", "one two three");
    does(&e, "Read", "{\"file_path\": \"m.c\"}", "one");
    refuses(&e, "MultiEdit",
            "{\"file_path\": \"m.c\", \"edits\": [{\"old_string\": \"one\", \"new_string\": \"1\"},"
            "{\"old_string\": \"four\", \"new_string\": \"4\"}]}",
            "'m.c' is unchanged: edit 2 of 2: old_string was not found");
    holds(&e, "m.c", "one two three");
    does(&e, "MultiEdit",
         "{\"file_path\": \"m.c\", \"edits\": [{\"old_string\": \"one\", \"new_string\": \"two\"},"
         "{\"old_string\": \"two\", \"new_string\": \"2\", \"replace_all\": true}]}",
         "2 edits, 3 places");
    holds(&e, "m.c", "2 2 three");
    refuses(&e, "MultiEdit",
            "{\"file_path\": \"no.c\", \"edits\": [{\"old_string\": \"\", \"new_string\": \"b\"}]}",
            "there is no 'no.c'|Write");
    refuses(&e, "MultiEdit", "{\"file_path\": \"m.c\", \"edits\": []}",
            "has 0 items, wanted 1 to 100");
    refuses(&e, "MultiEdit", "{\"file_path\": \"m.c\", \"edits\": \"[]\"}",
            "'edits' is text, wanted a list|not its JSON");
    refuses(&e, "MultiEdit", "{\"file_path\": \"m.c\", \"edits\": [{\"old_string\": \"a\"}]}",
            "MultiEdit: 'edits', item 1: 'new_string' is missing");
    episode_end(&e);
}

static void frozen(void **state)
{
    static const char *const names[] = { "model.py", "sub/deep/ref.h", NULL };
    struct episode e = episode_new();
    struct err err = { 0 };
    (void)state;
    lay(&e, "model.py", "task\n");
    lay(&e, "sub/deep/ref.h", "ref\n");
    assert_int_equal(symlink(".", path_join(&e.a, e.dir, "here")), 0);
    episode_open(&e, (struct tools_spec){ .frozen = names });
    does(&e, "Read", "{\"file_path\": \"model.py\"}", "task");
    does(&e, "Read", "{\"file_path\": \"here/model.py\"}", "task");
    refuses(&e, "Write", "{\"file_path\": \"model.py\", \"content\": \"x\"}",
            "is frozen|other files");
    refuses(&e, "Write", "{\"file_path\": \"sub//deep/./ref.h\", \"content\": \"x\"}", "is frozen");
    refuses(&e, "Write", "{\"file_path\": \"here/model.py\", \"content\": \"x\"}", "symbolic link");
    refuses(&e, "Edit",
            "{\"file_path\": \"model.py\", \"old_string\": \"task\", \"new_string\": \"x\"}",
            "is frozen");
    refuses(&e, "MultiEdit",
            "{\"file_path\": \"model.py\", \"edits\": [{\"old_string\": \"task\", \"new_string\": "
            "\"x\"}]}",
            "is frozen");
    holds(&e, "model.py", "task\n");
    assert_int_equal(tools_frozen_check(e.t, &err), OK);
    /* Changed from outside, replaced by a link, its folder replaced: each is put back. */
    lay(&e, "model.py", "else\n");
    assert_int_equal(rename(path_join(&e.a, e.dir, "sub"), path_join(&e.a, e.dir, "sub2")), 0);
    assert_int_equal(symlink("..", path_join(&e.a, e.dir, "sub")), 0);
    assert_int_equal(tools_frozen_check(e.t, &err), ERR_STATE);
    assert_non_null(strstr(err.text, "model.py, sub/deep/ref.h"));
    holds(&e, "model.py", "task\n");
    holds(&e, "sub/deep/ref.h", "ref\n");
    assert_int_equal(mode_of(&e, "sub/deep/ref.h"), 0444);
    assert_int_equal(tools_frozen_check(e.t, &err), OK);
    episode_end(&e);
}

static void opening(void **state)
{
    static const char *const none[] = { "none.py", NULL }, *const out[] = { "../x", NULL };
    static const char *const odd[] = { "./model.py", NULL }, *const link[] = { "link", NULL };
    struct episode e = episode_new();
    struct tools *t = NULL;
    (void)state;
    lay(&e, "model.py", "task\n");
    assert_int_equal(symlink("model.py", path_join(&e.a, e.dir, "link")), 0);
    lay(&e, "tmp/mine", "mine\n");
    const struct {
        struct tools_spec spec;
        enum err_code code;
        const char *want;
    } rows[] = {
        { { .workspace = "/no/such" }, ERR_SYSTEM, "find the workspace '/no/such'" },
        { { .workspace = e.dir, .frozen = none }, ERR_SYSTEM, "frozen file 'none.py'" },
        { { .workspace = e.dir, .frozen = out }, ERR_USAGE, "outside" },
        { { .workspace = e.dir, .frozen = odd }, ERR_USAGE, "write it as 'model.py'" },
        { { .workspace = e.dir, .frozen = link }, ERR_SYSTEM, "frozen file 'link'" },
        { { .workspace = e.dir, .scratch = e.dir }, ERR_USAGE, "lies in the workspace" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct err err = { 0 };
        enum err_code code = tools_open(&rows[i].spec, &t, &err);
        if (code != rows[i].code || strstr(err.text, rows[i].want) == NULL)
            fail_msg("row %zu: %d, %s", i, (int)code, err.text);
    }
    tools_close(NULL);
    holds(&e, "tmp/mine", "mine\n"); /* nothing of the workspace was taken for scratch */
    episode_end(&e);
}

/* One session at a time in a scratch folder, which is empty again after it. */
static void scratch_is_ones_own(void **state)
{
    struct episode e = episode_new();
    const char *bin = arena_fmt(&e.a, "%s/tmp", e.top), *live = NULL;
    struct err err = { 0 };
    struct str *names;
    size_t n;
    (void)state;
    assert_int_equal(mkdir(bin, 0755), 0);
    live = path_join(&e.a, bin, "cuda-agent-tools-live");
    assert_int_equal(mkdir(live, 0755), 0);
    struct tools_spec spec = { .workspace = e.dir, .scratch = live };
    struct tools *first = NULL, *second = NULL;
    assert_int_equal(tools_open(&spec, &first, &err), OK);
    assert_int_equal(tools_open(&spec, &second, &err), ERR_SYSTEM);
    assert_non_null(strstr(err.text, "lock the scratch folder"));
    assert_true(path_exists(path_join(&e.a, live, "spill"))); /* the first one's, still */
    tools_close(first);
    assert_int_equal(dir_list(&e.a, live, NULL, &names, &n, &err), OK);
    assert_int_equal(n, 0);
    assert_false(path_exists(path_join(&e.a, live, "spill")));
    episode_end(&e);
}

static void todos(void **state)
{
    struct episode e = episode_start();
    (void)state;
    assert_string_equal(tools_reminder(e.t, &e.a).ptr, "");
    does(&e, "TodoWrite",
         "{\"todos\": [{\"content\": \"read\", \"status\": \"completed\", \"activeForm\": "
         "\"Reading\"},"
         "{\"content\": \"tile\", \"status\": \"in_progress\"}, {\"content\": \"measure\", "
         "\"status\": \"pending\"}]}",
         "Kept: 1 completed, 1 in progress, 1 pending.");
    assert_string_equal(tools_reminder(e.t, &e.a).ptr, "To do:\n[x] read\n[>] tile\n[ ] measure\n");
    refuses(&e, "TodoWrite",
            "{\"todos\": [{\"content\": \"a\", \"status\": \"in_progress\"}, {\"content\": \"b\", "
            "\"status\": \"in_progress\"}]}",
            "2 items are in_progress");
    refuses(&e, "TodoWrite", "{\"todos\": [{\"content\": \"a\", \"status\": \"done\"}]}",
            "'status' is 'done', wanted one of: pending, in_progress, completed");
    assert_string_equal(tools_reminder(e.t, &e.a).ptr, "To do:\n[x] read\n[>] tile\n[ ] measure\n");
    does(&e, "TodoWrite", "{\"todos\": []}", "Kept: 0 completed");
    assert_string_equal(tools_reminder(e.t, &e.a).ptr, "");
    episode_end(&e);
}

/* More files than are remembered: the oldest have to be read again, nothing grows. */
static void memory_of_files(void **state)
{
    struct episode e = episode_start();
    (void)state;
    for (int i = 0; i < 600; i++)
        does(&e, "Write", arena_fmt(&e.a, "{\"file_path\": \"f%d\", \"content\": \"%d\"}", i, i),
             "Made");
    refuses(&e, "Write", "{\"file_path\": \"f0\", \"content\": \"x\"}", "was not read yet");
    does(&e, "Write", "{\"file_path\": \"f599\", \"content\": \"x\"}", "Wrote");
    does(&e, "Write", "{\"file_path\": \"f100\", \"content\": \"x\"}", "Wrote");
    episode_end(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reading),
        cmocka_unit_test(reading_what_is_odd),
        cmocka_unit_test(paths),
        cmocka_unit_test(links_are_not_written),
        cmocka_unit_test(writing),
        cmocka_unit_test(editing),
        cmocka_unit_test(editing_many),
        cmocka_unit_test(frozen),
        cmocka_unit_test(opening),
        cmocka_unit_test(todos),
        cmocka_unit_test(scratch_is_ones_own),
        cmocka_unit_test(memory_of_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
