/* Glob and Grep over a tree; patterns that should fit, that should not, and that never end. */
#include "episode.h"

#include <fcntl.h>

#include "tools/glob.h"
#include "tools/regex.h"

static void globs(void **state)
{
    static const struct {
        const char *pattern, *path;
        bool anywhere, fits;
    } rows[] = {
        { "*.cu", "a.cu", false, true },
        { "*.cu", "k/a.cu", false, false },
        { "*.cu", "k/a.cu", true, true },
        { "**/*.cu", "a.cu", false, true },
        { "**/*.cu", "x/y/a.cu", false, true },
        { "x/**/a.cu", "x/a.cu", false, true },
        { "x/**/a.cu", "x/1/2/3/a.cu", false, true },
        { "x/**/a.cu", "y/a.cu", false, false },
        { "x/**", "x/1/2", false, true },
        { "**", "x/1/2", false, true },
        { "x/*", "x/1/2", false, false },
        { "x/*/2", "x/1/2", true, true },
        { "*.{cu,cuh}", "a.cuh", false, true },
        { "*.{cu,cuh}", "a.c", false, false },
        { "{a,b{1,2}}/x", "b2/x", false, true },
        { "{a,b{1,2}}/x", "b3/x", false, false },
        { "a{,b}.c", "a.c", false, true },
        { "a?c", "abc", false, true },
        { "a?c", "a/c", false, false },
        { "[a-c]x", "bx", false, true },
        { "[!a-c]x", "bx", false, false },
        { "[]x]y", "]y", false, true },
        { "[a", "[a", false, true },
        { "a\\*b", "a*b", false, true },
        { "a\\*b", "axb", false, false },
        { "./a//b", "a/b", false, true },
        { "a*b*c", "a1b2b3c", false, true },
        { "a*b*c", "a1b2b3", false, false },
        { "{", "{", false, true },
        { "", "a", false, false },
        { "*", ".hidden", false, true },
        { "*a*a*a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false,
          false },
        { "**/**/**/**/**/**/**/**/z", "a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a", false,
          false },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        own_arena a = { 0 };
        struct glob g = { 0 };
        struct err err = { 0 };
        enum err_code code = glob_make(&a, str_from(rows[i].pattern), rows[i].anywhere, &g, &err);
        if (code != (rows[i].pattern[0] == '\0' ? ERR_USAGE : OK))
            fail_msg("'%s': %s", rows[i].pattern, err.text);
        if (code == OK && glob_fits(&g, str_from(rows[i].path)) != rows[i].fits)
            fail_msg("'%s' and '%s'", rows[i].pattern, rows[i].path);
    }
}

static void globs_refused(void **state)
{
    static const struct {
        const char *pattern, *want;
    } rows[] = {
        { "../x", "cannot go up" },
        { "{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", "more than 64 patterns" },
        { "{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}", "more than 8 braces" },
        { "a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a",
          "more than 32 parts" },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        own_arena a = { 0 };
        struct glob g = { 0 };
        struct err err = { 0 };
        assert_int_equal(glob_make(&a, str_from(rows[i].pattern), false, &g, &err), ERR_USAGE);
        if (strstr(err.text, rows[i].want) == NULL)
            fail_msg("'%s': %s", rows[i].pattern, err.text);
    }
}

static void set_time(struct episode *e, const char *name, time_t seconds)
{
    struct timespec t[2] = { { seconds, 0 }, { seconds, 0 } };
    assert_int_equal(utimensat(AT_FDCWD, path_join(&e->a, e->dir, name), t, 0), 0);
}

static struct episode tree(void)
{
    struct episode e = episode_start();
    lay(&e, "model.py", "class Model:\n    pass\n");
    lay(&e, "kernels/a.cu", "__global__ void a() {}\nint x = 1;\n// TODO one\n");
    lay(&e, "kernels/deep/b.cu", "int y = 2;\r\n// todo two\r\n");
    lay(&e, "kernels/c.cuh", "#pragma once\n");
    lay(&e, ".git/config", "TODO in git\n");
    lay(&e, ".hidden", "TODO hidden\n");
    lay(&e, "bin.o", "TODO");
    assert_int_equal(truncate(path_join(&e.a, e.dir, "bin.o"), 100), 0);
    assert_int_equal(symlink("/etc", path_join(&e.a, e.dir, "etc")) |
                         symlink("kernels", path_join(&e.a, e.dir, "link")) |
                         mkfifo(path_join(&e.a, e.dir, "fifo"), 0600),
                     0);
    static const char *const names[] = { "model.py",      "kernels/a.cu", "kernels/deep/b.cu",
                                         "kernels/c.cuh", ".hidden",      "bin.o" };
    for (size_t i = 0; i < COUNT(names); i++)
        set_time(&e, names[i], 1000 + (time_t)i);
    return e;
}

static void globbing(void **state)
{
    struct episode e = tree();
    (void)state;
    assert_string_equal(does(&e, "Glob", "{\"pattern\": \"**/*.cu\"}", ""),
                        "kernels/deep/b.cu\nkernels/a.cu\n");
    assert_string_equal(does(&e, "Glob", "{\"pattern\": \"*.cu\", \"path\": \"kernels\"}", ""),
                        "kernels/a.cu\n");
    assert_string_equal(
        does(&e, "Glob", "{\"pattern\": \"**\"}", ""),
        "bin.o\n.hidden\nkernels/c.cuh\nkernels/deep/b.cu\nkernels/a.cu\nmodel.py\n");
    does(&e, "Glob",
         arena_fmt(&e.a, "{\"pattern\": \"*.py\", \"path\": \"%s\"}", tools_folder(e.t)),
         "model.py");
    does(&e, "Glob", "{\"pattern\": \"*.rs\"}", "[no file fits]");
    refuses(&e, "Glob", "{\"pattern\": \"*\", \"path\": \"none\"}", "there is no 'none'");
    refuses(&e, "Glob", "{\"pattern\": \"*\", \"path\": \"etc\"}", "symbolic link leads out");
    refuses(&e, "Glob", "{\"pattern\": \"*\", \"path\": \"..\"}", "outside");
    refuses(&e, "Glob", "{\"pattern\": \"*\", \"path\": \"/proc\"}", "outside");
    for (int i = 0; i < 130; i++)
        lay(&e, arena_fmt(&e.a, "many/%03d", i), "");
    does(&e, "Glob", "{\"pattern\": \"many/*\"}", "[30 more: a narrower pattern tells them]");
    episode_end(&e);
}

static void grepping(void **state)
{
    struct episode e = tree();
    (void)state;
    assert_string_equal(does(&e, "Grep", "{\"pattern\": \"TODO\"}", ""), ".hidden\nkernels/a.cu\n");
    assert_string_equal(does(&e, "Grep",
                             "{\"pattern\": \"todo\", \"-i\": true, \"glob\": \"*.cu\", "
                             "\"output_mode\": \"content\"}",
                             ""),
                        "kernels/deep/b.cu:2:// todo two\nkernels/a.cu:3:// TODO one\n");
    assert_string_equal(does(&e, "Grep",
                             "{\"pattern\": \"^int (.) = \\\\d;$\", \"output_mode\": \"content\", "
                             "\"-n\": false}",
                             ""),
                        "kernels/deep/b.cu:int y = 2;\nkernels/a.cu:int x = 1;\n");
    assert_string_equal(does(&e, "Grep",
                             "{\"pattern\": \"[12]\", \"path\": \"kernels/a.cu\", \"output_mode\": "
                             "\"content\", \"-B\": 1}",
                             ""),
                        "kernels/a.cu-1-__global__ void a() {}\nkernels/a.cu:2:int x = 1;\n");
    assert_string_equal(does(&e, "Grep",
                             "{\"pattern\": \"x\", \"path\": \"kernels/a.cu\", \"output_mode\": "
                             "\"content\", \"-A\": 1}",
                             ""),
                        "kernels/a.cu:2:int x = 1;\nkernels/a.cu-3-// TODO one\n");
    does(&e, "Grep",
         "{\"pattern\": \"= \", \"output_mode\": \"content\", \"-C\": 1, \"path\": \"kernels\"}",
         "b.cu-2-// todo two\n--\nkernels/a.cu-1-");
    assert_string_equal(
        does(&e, "Grep",
             "{\"pattern\": \"\\\\w+\", \"output_mode\": \"count\", \"path\": \"kernels\"}", ""),
        "kernels/c.cuh:1\nkernels/deep/b.cu:2\nkernels/a.cu:3\n");
    assert_string_equal(
        does(&e, "Grep",
             "{\"pattern\": \"void.*?x\", \"multiline\": true, \"output_mode\": \"content\"}", ""),
        "kernels/a.cu:1:__global__ void a() {}\nkernels/a.cu:2:int x = 1;\n");
    does(&e, "Grep", "{\"pattern\": \"void.*x\"}", "[no match]");
    episode_end(&e);
}

static void grep_refuses(void **state)
{
    struct episode e = tree();
    (void)state;
    refuses(&e, "Grep", "{\"pattern\": \"(\"}",
            "the pattern is wrong at character|put a backslash");
    refuses(&e, "Grep", "{\"pattern\": \"a\", \"path\": \"/etc\"}", "outside");
    refuses(&e, "Grep", "{\"pattern\": \"a\", \"path\": \"etc/passwd\"}", "symbolic link");
    refuses(&e, "Grep", "{\"pattern\": \"a\", \"path\": \"no\"}", "there is no 'no'");
    refuses(&e, "Grep", "{\"pattern\": \"a\", \"output_mode\": \"lines\"}",
            "wanted one of: files_with_matches, content, count");
    refuses(&e, "Grep", "{\"pattern\": \"a\", \"-A\": 51}", "wanted 0 to 50");
    refuses(&e, "Grep", "{\"pattern\": \"\\\\C\"}", "the pattern is wrong");
    refuses(&e, "Grep", "{\"pattern\": \"a\", \"path\": \"fifo\"}",
            "'fifo' is neither file nor folder");
    lay(&e, "bad", "x\xff\xfe y\nabc\n");
    does(&e, "Grep", "{\"pattern\": \"abc|y\", \"path\": \"bad\", \"output_mode\": \"content\"}",
         "bad:1:x\xef\xbf\xbd\xef\xbf\xbd y\nbad:2:abc");
    does(&e, "Grep",
         "{\"pattern\": \"y.abc\", \"path\": \"bad\", \"output_mode\": \"content\", \"multiline\": "
         "true}",
         "bad:1:");
    episode_end(&e);
}

/* Patterns that backtrack for years on these lines. */
static void grep_ends(void **state)
{
    static const char *const patterns[] = { "(a+)+$", "(a|aa)+$", "(a*)*b", "(.*)*x(.*)*y",
                                            "^(([a-z])+.)+[A-Z]([a-z])+$" };
    struct episode e = episode_start();
    char *line = arena_new(&e.a, char, 4002);
    (void)state;
    memset(line, 'a', 4000);
    line[4000] = '!';
    lay(&e, "bad", line);
    lay(&e, "good", "aab\n");
    for (size_t i = 0; i < COUNT(patterns); i++) {
        const char *args =
            arena_fmt(&e.a, "{\"pattern\": \"%s\", \"output_mode\": \"count\"}", patterns[i]);
        const char *many =
            arena_fmt(&e.a, "{\"pattern\": \"%s\", \"multiline\": true}", patterns[i]);
        call(&e, "Grep", args);
        assert_false(e.last.failed);
        call(&e, "Grep", many);
        assert_false(e.last.failed);
    }
    does(&e, "Grep", "{\"pattern\": \"(a+)+$\", \"path\": \"bad\"}",
         "[no match]\n[the pattern takes too many steps in 1 places");
    refuses(&e, "Grep", "{\"pattern\": \"((a{1,999}){1,999}){1,999}\"}", "the pattern is wrong");
    episode_end(&e);
}

static void regex_matches(void **state)
{
    own_regex re = { 0 };
    struct err err = { 0 };
    struct span at = { 0 };
    (void)state;
    assert_int_equal(regex_make(S("b+"), REGEX_PLAIN, &re, &err), OK);
    assert_int_equal(regex_find(&re, S("abbc"), 0, &at), REGEX_YES);
    assert_int_equal(at.from, 1);
    assert_int_equal(at.to, 3);
    assert_int_equal(regex_find(&re, S("abbc"), 3, &at), REGEX_NO);
    assert_int_equal(regex_find(&re, (struct str){ 0 }, 0, &at), REGEX_NO);
    regex_fini(&re);
    /* An honest pattern on a long text needs room, and has it. */
    own_mem char *text = malloc(20001);
    memset(text, 'a', 20000);
    text[20000] = 'b';
    assert_int_equal(regex_make(S("(a|\\n)*b"), REGEX_MANY_LINES, &re, &err), OK);
    assert_int_equal(regex_find(&re, (struct str){ text, 20001 }, 0, &at), REGEX_YES);
    assert_int_equal(at.to, 20001);
    regex_fini(&re);
    assert_int_equal(regex_make(S(""), REGEX_PLAIN, &re, &err), ERR_USAGE);
}

/* The walk ends in a folder of very many. */
static void deep_trees(void **state)
{
    struct episode e = episode_start();
    (void)state;
    struct buf b = { .arena = &e.a, .max = 4096 };
    for (int i = 0; i < 60; i++)
        buf_addz(&b, "d/");
    lay(&e, arena_fmt(&e.a, "%sx", b.ptr), "needle");
    lay(&e, "top", "needle");
    does(&e, "Glob", "{\"pattern\": \"top\"}", "top\n");
    does(&e, "Grep", "{\"pattern\": \"needle\"}", "[there is more");
    episode_end(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(globs),         cmocka_unit_test(globs_refused),
        cmocka_unit_test(globbing),      cmocka_unit_test(grepping),
        cmocka_unit_test(grep_refuses),  cmocka_unit_test(grep_ends),
        cmocka_unit_test(regex_matches), cmocka_unit_test(deep_trees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
