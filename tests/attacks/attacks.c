/* Grade every source of a folder (rows.h) in one warm session and compare with the verdict that it
 * wants. Ends with "N passed, N failed".
 *
 *   attacks cpu|cuda PYTHON TASK.py FOLDER verify|time [--table FILE]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attacks/rows.h"
#include "core/own.h"
#include "harness/exam.h"
#include "sandbox/box.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/stop.h"

/* | what it is | target | verdict | what caught it | */
static void table_row(FILE *table, const struct row *r, const struct verdict *v)
{
    struct str kind = { 0 }, text = r->what;
    str_cut(&text, ':', &kind);
    text = str_trim(text);
    fprintf(table, "| %.*s | `%s` %.*s | %s | ", STR_FMT(kind), r->name, STR_FMT(text),
            verdict_status_name(v->status));
    if (v->status == VERDICT_PASS && str_starts(kind, S("hacks")))
        fputs("gained nothing: paid for the work it did. ", table);
    for (const char *c = v->reason; *c != '\0'; c++)
        fprintf(table, *c == '|' ? "\\|" : "%c", *c);
    fputs(" |\n", table);
}

static bool grade(struct exam *x, const struct row *r, enum grade_step until, FILE *table)
{
    struct err err = { 0 };
    struct verdict *v = calloc(1, sizeof *v);
    bool good = false;
    if (v == NULL)
        exit(2);
    int64_t t0 = clock_ms();
    struct grade_options opt = { .until = until, .seconds = 3, .first_ms = row_first_ms(r) };
    if (exam_grade(x, &r->c, &opt, v, &err) != OK) {
        printf("FAIL %-32s error: %s\n", r->name, err.text);
    } else {
        const char *status = verdict_status_name(v->status);
        good = row_wanted(r, status);
        if (v->reason[0] == '\0' && v->n_notes > 0)
            snprintf(v->reason, sizeof v->reason, "%s", v->note[0]);
        printf("%s %-32s %-14s %5lld ms  %s\n", good ? "ok  " : "FAIL", r->name, status,
               (long long)(clock_ms() - t0), v->reason);
        if (until == GRADE_TIME)
            printf("     %.1f us a call, alone %.1f\n", v->time_us[ARM_CANDIDATE].median,
                   v->alone_us);
        if (table != NULL)
            table_row(table, r, v);
    }
    free(v);
    return good;
}

static void say(const char *line)
{
    printf("  %s\n", line);
}

static enum err_code all(struct exam *x, enum target target, const char *dir, enum grade_step until,
                         FILE *table, struct err *err)
{
    own_arena a = { 0 };
    struct row *row;
    size_t n = 0, passed = 0;
    if (rows_read(&a, target, dir, &row, &n, err) != OK)
        return err->code;
    for (size_t i = 0; i < n; i++)
        passed += grade(x, &row[i], until, table);
    struct box_facts box;
    if (box_probe(&box, err) != OK)
        return err->code;
    printf("rung %d\n%zu passed, %zu failed\n", box.rung, passed, n - passed);
    return passed == n ? OK : err_raise(err, ERR_STATE, "%zu rows got another verdict", n - passed);
}

int main(int argc, char **argv)
{
    own_arena a = { 0 };
    struct err err = { 0 };
    struct task task;
    struct exam *x = NULL;
    setvbuf(stdout, NULL, _IOLBF, 0);
    stop_install();
    if (argc < 6)
        return 2;
    enum target target = strcmp(argv[1], "cuda") == 0 ? TARGET_CUDA : TARGET_CPU;
    enum grade_step until = strcmp(argv[5], "time") == 0 ? GRADE_TIME : GRADE_VERIFY;
    FILE *table = argc > 7 && strcmp(argv[6], "--table") == 0 ? fopen(argv[7], "a") : NULL;
    /* Small enough on the cpu that a hog is ended before its time is. */
    struct exam_config cfg = { .target = target,
                               .python = argv[2],
                               .threads = 2,
                               .mem_bytes = (int64_t)(target == TARGET_CUDA ? 8 : 1) << 30,
                               .say = say };
    enum err_code code = task_read(&a, argv[3], &task, &err);
    if (code == OK)
        code = exam_open(&cfg, &task, &x, &err);
    if (code == OK)
        code = all(x, target, argv[4], until, table, &err);
    exam_close(x);
    if (table != NULL && fclose(table) != 0)
        code = err_sys(&err, "write '%s'", argv[7]);
    if (code != OK && code != ERR_STATE)
        printf("attacks: %s (%s)\n0 passed, 1 failed\n", err.text, err.hint);
    return code == OK ? 0 : 1;
}
