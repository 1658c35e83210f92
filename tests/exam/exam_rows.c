/* Grade every source of a folder in one warm session and compare with the verdict that its
 * first line wants: `// want: wrong tampered`. Ends with "N passed, N failed".
 *
 *   exam_rows cpu|cuda PYTHON TASK.py ROWS_DIR [verify|time]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/own.h"
#include "harness/exam.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/stop.h"

static bool wanted(struct str text, const char *status)
{
    struct str line = { 0 }, word;
    if (!str_cut(&text, '\n', &line) || !str_starts(line, S("// want: ")))
        return false;
    line = str_drop(line, 9);
    while (str_cut(&line, ' ', &word))
        if (str_eq(word, str_from(status)))
            return true;
    return false;
}

/* The row's own source and the header that all rows share. */
static enum err_code row_read(struct arena *a, enum target target, const char *path,
                              struct candidate *c, struct err *err)
{
    bool cuda = target == TARGET_CUDA;
    const char *shared = cuda ? "row.cuh" : "row.h";
    struct str name = { path, (size_t)(strrchr(path, '/') - path) };
    c->target = target;
    c->author = "row";
    c->n_files = 2;
    c->file[0].name = cuda ? "main.cu" : "main.c";
    c->file[1].name = shared;
    if (file_read(a, path, 1 << 20, &c->file[0].text, err) != OK ||
        file_read(a, path_join(a, str_z(a, name), shared), 1 << 20, &c->file[1].text, err) != OK)
        return err->code;
    candidate_seal(c);
    return OK;
}

static bool row(struct exam *x, enum target target, const char *path, enum grade_step until)
{
    own_arena a = { 0 };
    struct err err = { 0 };
    struct candidate *c = calloc(1, sizeof *c);
    struct verdict *v = calloc(1, sizeof *v);
    bool good = false;
    if (c == NULL || v == NULL || row_read(&a, target, path, c, &err) != OK)
        exit(2);
    /* Sealing sorts by name: the source stands before the header. */
    struct str text = c->file[0].text;
    int64_t t0 = clock_ms();
    struct grade_options opt = { .until = until, .seconds = 3 };
    if (exam_grade(x, c, &opt, v, &err) != OK) {
        printf("FAIL %-40s error: %s\n", strrchr(path, '/') + 1, err.text);
    } else {
        const char *status = verdict_status_name(v->status);
        good = wanted(text, status);
        printf("%s %-32s %-14s %5lld ms  %s\n", good ? "ok  " : "FAIL", strrchr(path, '/') + 1,
               status, (long long)(clock_ms() - t0), v->reason);
    }
    free(c);
    free(v);
    return good;
}

static void say(const char *line)
{
    printf("  %s\n", line);
}

int main(int argc, char **argv)
{
    own_arena a = { 0 };
    struct err err = { 0 };
    struct task task;
    struct exam *x = NULL;
    struct str *names;
    size_t n = 0, passed = 0;
    static const char *const endings[] = { ".c", ".cu", NULL };
    setvbuf(stdout, NULL, _IOLBF, 0);
    stop_install();
    if (argc < 5)
        return 2;
    struct exam_config cfg = { .target = strcmp(argv[1], "cuda") == 0 ? TARGET_CUDA : TARGET_CPU,
                               .python = argv[2],
                               .threads = 2,
                               .mem_bytes = (int64_t)8 << 30,
                               .say = say };
    /* Small enough on the cpu that a hog is ended before its time is. */
    cfg.mem_bytes = (int64_t)(cfg.target == TARGET_CUDA ? 8 : 1) << 30;
    if (task_read(&a, argv[3], &task, &err) != OK || exam_open(&cfg, &task, &x, &err) != OK ||
        dir_list(&a, argv[4], endings, &names, &n, &err) != OK) {
        printf("exam_rows: %s (%s)\n0 passed, 1 failed\n", err.text, err.hint);
        return 2;
    }
    enum grade_step until = argc > 5 && strcmp(argv[5], "time") == 0 ? GRADE_TIME : GRADE_VERIFY;
    for (size_t i = 0; i < n; i++)
        passed += row(x, cfg.target, path_join(&a, argv[4], names[i].ptr), until);
    exam_close(x);
    printf("%zu passed, %zu failed\n", passed, n - passed);
    return passed == n ? 0 : 1;
}
