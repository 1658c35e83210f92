/* How many wrong kernels does the exam let through, and how many right ones does it refuse?
 *
 *   mutants cpu|cuda PYTHON FOLDER [--count N] [--honest N] [--seed S] [--part I/N] [--only
 * KERNEL,KERNEL]
 *           [--log FILE] [--table FILE]
 *
 * Every kernel of FOLDER (tests/mutants) for the target is compiled once, as all its mutants
 * (mutant.h). Number i of a seed is always the same kernel, fault and place, so a run that was
 * interrupted goes on where its log ends. A mutant is dead when it fails, or passes in a lower
 * precision class than the right kernel. Who lives through the check is run beside the right kernel
 * on 1,000 inputs: with the same bits on all of them it is no mutant. Who lives still is graded in
 * full.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/json.h"
#include "core/own.h"
#include "mutants/mutants.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/stop.h"

#define HOLDS 3 /* how often the right kernel is graded to know its class */

/* ---- one mutant ---- */

static enum err_code object_of(struct run *r, const struct kernel *k, const struct mutant *m,
                               const char **ret, struct err *err)
{
    own_mem char *bytes = malloc(k->bytes.len);
    if (bytes == NULL)
        return err_sys(err, "copy an object");
    memcpy(bytes, k->bytes.ptr, k->bytes.len);
    memcpy(bytes + k->at, m, sizeof *m);
    *ret = path_join(&r->a, r->work, "mutant.so");
    return file_write(*ret, (struct str){ bytes, k->bytes.len }, 0755, err);
}

static enum err_code graded(struct run *r, struct exam *x, const struct kernel *k,
                            const struct mutant *m, enum grade_step until, struct verdict *v,
                            struct err *err)
{
    const char *so = NULL;
    struct grade_options opt = { .until = until, .seconds = 3 };
    if (object_of(r, k, m, &so, err) != OK)
        return err->code;
    return exam_grade_object(x, &k->c, so, &opt, v, err);
}

static const char *const ends[] = { "check", "class", "equivalent", "time",
                                    "LIVES", "right", "REFUSED" };
enum end { BY_CHECK, BY_CLASS, EQUIVALENT, BY_TIME, LIVES, RIGHT, REFUSED };

static enum err_code judge(struct run *r, struct exam *x, const struct kernel *k,
                           const struct pick *p, struct verdict *v, enum end *ret, struct err *err)
{
    bool same = false;
    if (graded(r, x, k, &p->m, GRADE_VERIFY, v, err) != OK)
        return err->code;
    *ret = p->rule->honest ? REFUSED : BY_CHECK;
    if (v->status != VERDICT_PASS)
        return OK;
    *ret = p->rule->honest ? RIGHT : BY_CLASS;
    if (p->rule->honest || v->precision > k->class)
        return OK;
    *ret = EQUIVALENT;
    if (equivalent(r, x, k, &p->m, &same, err) != OK || same)
        return err->code;
    if (graded(r, x, k, &p->m, GRADE_TIME, v, err) != OK)
        return err->code;
    *ret = v->status != VERDICT_PASS || v->precision > k->class ? BY_TIME : LIVES;
    return OK;
}

static void count(struct rule *r, enum end end)
{
    r->made++;
    r->equivalent += end == EQUIVALENT;
    r->by_check += end == BY_CHECK;
    r->by_class += end == BY_CLASS;
    r->by_time += end == BY_TIME;
    r->lived += end == LIVES || end == REFUSED;
}

/* ---- one kernel ---- */

static enum err_code built(struct run *r, struct exam *x, struct kernel *k, struct err *err)
{
    struct toolchain tools = { 0 };
    struct build_result b;
    const json_t *device = json_object_get(exam_hello(x), "device");
    const char *arch = json_string_value(json_object_get(device, "arch"));
    toolchain_find(&r->a, NULL, &tools);
    struct build_request req = { &k->c, &tools, arch ? arch : "", 120000, NULL };
    if (build_run(&r->a, &req, &b, err) != OK)
        return err->code;
    if (!b.ok)
        return err_raise(err, ERR_STATE, "'%s' does not compile: %s", k->name, b.reason);
    k->so = b.so_path;
    if (file_read(&r->a, b.so_path, 64 << 20, &k->bytes, err) != OK)
        return err->code;
    const char *at = memmem(k->bytes.ptr, k->bytes.len, MAGIC, sizeof MAGIC);
    if (at == NULL)
        return err_raise(err, ERR_STATE, "'%s' holds no place for its mutants", k->name);
    k->at = (size_t)(at - k->bytes.ptr);
    return OK;
}

static enum err_code class_of(struct run *r, struct exam *x, struct kernel *k, struct verdict *v,
                              struct err *err)
{
    const struct mutant right = { MAGIC, 0, 0, 0 };
    for (int i = 0; i < HOLDS; i++) {
        if (graded(r, x, k, &right, GRADE_VERIFY, v, err) != OK)
            return err->code;
        if (v->status != VERDICT_PASS)
            return err_raise(err, ERR_STATE, "the right '%s' is refused: %s", k->name, v->reason);
        k->class = v->precision > k->class ? v->precision : k->class;
    }
    return OK;
}

static bool mine(const struct run *r, bool honest, int64_t i, size_t kernel)
{
    return (size_t)i % r->n_kernels == kernel && i % r->parts == r->part && !r->done[honest][i];
}

static enum err_code kernel_run(struct run *r, size_t at, struct exam *x, struct verdict *v,
                                struct err *err)
{
    struct kernel *k = &r->kernel[at];
    if (built(r, x, k, err) != OK || class_of(r, x, k, v, err) != OK)
        return err->code;
    int64_t t0 = clock_ms(), n = 0;
    for (int honest = 0; honest < 2; honest++)
        for (int64_t i = 0; i < (honest ? r->honest : r->count); i++) {
            if (!mine(r, honest, i, at))
                continue;
            struct pick p = pick(r, honest, i);
            enum end end;
            if (stop_check(err) != OK)
                return err->code;
            if (judge(r, x, k, &p, v, &end, err) != OK)
                return err_within(err, "%s %s %lld %lld", k->name, p.rule->name, (long long)p.m.a,
                                  (long long)p.m.b);
            count(p.rule, end);
            n++;
            char line[512];
            snprintf(line, sizeof line, "%s %lld %s %s %lld %lld %s %s %s\n",
                     honest ? "honest" : "fault", (long long)i, k->name, p.rule->name,
                     (long long)p.m.a, (long long)p.m.b, ends[end], precision_name(v->precision),
                     verdict_status_name(v->status));
            fputs(line, r->log);
            fflush(r->log);
            if (end == LIVES || end == REFUSED)
                printf("  %s  %s\n", line, v->reason);
        }
    printf("%-16s %5lld in %6.1f s, class %s\n", k->name, (long long)n,
           (double)(clock_ms() - t0) / 1e3, precision_name(k->class));
    fflush(stdout);
    return OK;
}

static bool nothing_left(const struct run *r, size_t at)
{
    for (int honest = 0; honest < 2; honest++)
        for (int64_t i = 0; i < (honest ? r->honest : r->count); i++)
            if (mine(r, honest, i, at))
                return false;
    return true;
}

/* A comma between names; NULL: all. */
static bool among(const char *list, const char *name)
{
    struct str rest = str_from(list), one = { 0 };
    while (list != NULL && str_cut(&rest, ',', &one))
        if (str_eq(one, str_from(name)))
            return true;
    return list == NULL;
}

static enum err_code kernel_open_and_run(struct run *r, size_t at, struct err *err)
{
    struct task task;
    struct exam *x = NULL;
    struct exam_config cfg = { .target = r->target, .python = r->python };
    struct verdict *v = calloc(1, sizeof *v);
    if (!among(r->only, r->kernel[at].name) || nothing_left(r, at)) {
        free(v);
        return OK;
    }
    enum err_code code = v == NULL ? err_sys(err, "allocate a verdict") : OK;
    if (code == OK)
        code = task_read(&r->a, r->kernel[at].task, &task, err);
    if (code == OK)
        code = exam_open(&cfg, &task, &x, err);
    if (code == OK)
        code = kernel_run(r, at, x, v, err);
    exam_close(x);
    free(v);
    return code;
}

/* ---- the log ---- */

static enum err_code log_open(struct run *r, const char *path, struct err *err)
{
    struct str text = { 0 }, line = { 0 };
    for (int honest = 0; honest < 2; honest++)
        r->done[honest] = arena_new(&r->a, bool, (size_t)(honest ? r->honest : r->count) + 1);
    if (path_exists(path) && file_read(&r->a, path, 256 << 20, &text, err) != OK)
        return err->code;
    while (str_cut(&text, '\n', &line)) {
        char what[16], kernel[64], name[64], end[16];
        long long i, a, b;
        if (sscanf(str_z(&r->a, line), "%15s %lld %63s %63s %lld %lld %15s", what, &i, kernel, name,
                   &a, &b, end) != 7)
            continue;
        bool honest = strcmp(what, "honest") == 0;
        if (i < 0 || i >= (honest ? r->honest : r->count) || r->done[honest][i])
            continue;
        struct pick p = pick(r, honest, i);
        if (strcmp(p.rule->name, name) != 0 || p.m.a != a || p.m.b != b)
            return err_raise(err, ERR_FORMAT, "'%s' is the log of another seed or of other kernels",
                             path);
        for (size_t e = 0; e < COUNT(ends); e++)
            if (strcmp(ends[e], end) == 0)
                count(p.rule, (enum end)e);
        r->done[honest][i] = true;
    }
    r->log = fopen(path, "a");
    return r->log != NULL ? OK : err_sys(err, "open '%s'", path);
}

/* ---- the command line ---- */

static enum err_code number(const char *text, int64_t *ret, struct err *err)
{
    return str_int(str_from(text), 0, INT64_MAX, ret, err);
}

static enum err_code option(struct run *r, const char *name, const char *value, const char **log,
                            const char **table_path, struct err *err)
{
    long long part, parts;
    if (strcmp(name, "--count") == 0)
        return number(value, &r->count, err);
    if (strcmp(name, "--honest") == 0)
        return number(value, &r->honest, err);
    if (strcmp(name, "--seed") == 0)
        return number(value, &r->seed, err);
    if (strcmp(name, "--part") == 0 && sscanf(value, "%lld/%lld", &part, &parts) == 2 &&
        part >= 1 && part <= parts) {
        r->part = part - 1;
        r->parts = parts;
        return OK;
    }
    if (strcmp(name, "--only") == 0)
        r->only = value;
    else if (strcmp(name, "--log") == 0)
        *log = value;
    else if (strcmp(name, "--table") == 0)
        *table_path = value;
    else
        return err_raise(err, ERR_USAGE, "'%s %s'", name, value);
    return OK;
}

static enum err_code all(struct run *r, struct err *err)
{
    for (size_t i = 0; i < r->n_kernels; i++)
        if (kernel_open_and_run(r, i, err) != OK)
            return err_within(err, "'%s'", r->kernel[i].name);
    return OK;
}

int main(int argc, char **argv)
{
    struct run *r = calloc(1, sizeof *r);
    struct err err = { 0 };
    const char *log = NULL, *table_path = NULL;
    if (r == NULL || argc < 4 || argc % 2 != 0) {
        fprintf(stderr, "usage: mutants cpu|cuda PYTHON FOLDER [--count N] [--honest N] [--seed S] "
                        "[--part I/N] [--only KERNEL,KERNEL] [--log FILE] [--table FILE]\n");
        return 2;
    }
    r->target = strcmp(argv[1], "cuda") == 0 ? TARGET_CUDA : TARGET_CPU;
    r->python = argv[2];
    r->dir = arena_fmt(&r->a, "%s/%s", argv[3], argv[1]);
    r->count = 200;
    r->honest = 50;
    r->parts = 1;
    enum err_code code = OK;
    for (int i = 4; i + 1 < argc && code == OK; i += 2)
        code = option(r, argv[i], argv[i + 1], &log, &table_path, &err);
    stop_install();
    if (code == OK)
        code = dir_temp(&r->a, "/tmp", "ca-mutants", &r->work, &err);
    if (code == OK)
        code = kernels_read(r, &err);
    if (code == OK)
        code = log_open(r, log ? log : path_join(&r->a, r->work, "log"), &err);
    if (code == OK)
        code = all(r, &err);
    struct err ignored = { 0 };
    if (r->work != NULL && dir_remove(r->work, &ignored) != OK)
        fprintf(stderr, "mutants: %s\n", ignored.text);
    if (code != OK) {
        fprintf(stderr, "mutants: %s\n%s%s\n", err.text, err.hint[0] ? "  hint: " : "", err.hint);
        printf("0 passed, 1 failed\n");
        return 2;
    }
    return report(r, table_path) == 0 ? 0 : 1;
}
