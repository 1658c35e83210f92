/* Hostile gradings without end in one warm session, and what they leave behind.
 *
 *   endure cpu|cuda PYTHON TASK.py FOLDER [--count N] [--seed S] [--log FILE]
 *
 * Rows are drawn at random; every tenth grading is an honest one, every fiftieth has its worker
 * killed in the middle. Every hundredth, and at the end, what is left is counted against the first
 * time that all rows had run once: processes below this one, open descriptors, folders of boxes,
 * control groups, files of the program's home but its caches. A log is resumed: what it holds is
 * not done again. Ends with "N passed, N failed"; a growth is a failure.
 */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attacks/rows.h"
#include "core/own.h"
#include "harness/exam.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/stop.h"

#define HONEST_EVERY 10
#define KILL_EVERY 50
#define LOOK_EVERY 100
#define KILL_WITHIN_MS 400
#define PIDS_MAX 4096

/* What could be left. */
struct left {
    int processes, descriptors, boxes, groups, files;
};

struct endure {
    struct exam *x;
    struct row *row;
    size_t n_rows;
    FILE *log;
    unsigned seed;
    long count, done, as_wanted, killed, errors;
    struct left first;
    bool grown;
    int64_t honest_ms, honest;
};

/* ---- counting ---- */

static int entries(const char *dir, const char *head, int depth)
{
    DIR *d = opendir(dir);
    int n = 0;
    for (struct dirent *e = d ? readdir(d) : NULL; e != NULL; e = readdir(d)) {
        char path[4096];
        if (e->d_name[0] == '.' || strncmp(e->d_name, head, strlen(head)) != 0)
            continue;
        n++;
        if (e->d_type == DT_DIR && depth > 0 &&
            snprintf(path, sizeof path, "%s/%s", dir, e->d_name) < (int)sizeof path)
            n += entries(path, "", depth - 1);
    }
    if (d != NULL)
        closedir(d);
    return n;
}

static int parent_of(int pid)
{
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "re");
    size_t got = f ? fread(line, 1, sizeof line - 1, f) : 0;
    if (f != NULL)
        fclose(f);
    line[got] = '\0';
    const char *end = strrchr(line, ')'); /* the name may hold anything */
    return end != NULL && strlen(end) > 4 ? atoi(end + 4) : 0;
}

/* Pids below this process, zombies too. */
static int below(int pid[PIDS_MAX])
{
    DIR *d = opendir("/proc");
    int n = 0;
    for (struct dirent *e = d ? readdir(d) : NULL; e != NULL && n < PIDS_MAX; e = readdir(d)) {
        int p = atoi(e->d_name), up = p;
        while (up > 1 && up != getpid())
            up = parent_of(up);
        if (p != getpid() && up == getpid())
            pid[n++] = p;
    }
    if (d != NULL)
        closedir(d);
    return n;
}

/* Control groups and folders of boxes bear the pid of their starter. */
static int groups(void)
{
    static const char *const roots[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/memory",
                                         "/sys/fs/cgroup/pids" };
    char head[64];
    int n = 0;
    snprintf(head, sizeof head, "cuda-agent-%d-", (int)getpid());
    for (size_t i = 0; i < COUNT(roots); i++)
        n += entries(roots[i], head, 0);
    return n;
}

static int boxes(void)
{
    const char *dir = getenv("TMPDIR");
    char head[64];
    snprintf(head, sizeof head, "cuda-agent-box-%d-", (int)getpid());
    return entries(dir ? dir : "/tmp", head, 0);
}

static struct left look(void)
{
    own_arena a = { 0 };
    struct err ignored = { 0 };
    static int pid[PIDS_MAX];
    const char *home = NULL;
    struct left l = { .processes = below(pid),
                      .descriptors = entries("/proc/self/fd", "", 0),
                      .boxes = boxes(),
                      .groups = groups() };
    if (home_dir(&a, &home, &ignored) == OK)
        l.files = entries(home, "", 0) + entries(path_join(&a, home, "tmp"), "", 4);
    return l;
}

#define WAITING_MAX 5 /* the worker and a full pool of runners */

/* Between two and four runners wait at any time, each a process with its share of the rest: what
 * counts is what comes on top of those that are there. */
static bool more_than(const struct left *was, const struct left *now)
{
    int runners = now->processes - was->processes, share = was->groups / was->processes;
    return now->processes > WAITING_MAX || now->boxes > was->boxes || now->files > was->files ||
           now->descriptors > was->descriptors + 2 * runners ||
           now->groups > was->groups + share * runners;
}

static void compare(struct endure *e)
{
    struct left now = look();
    const struct left *was = &e->first;
    printf("after %ld: %d processes, %d descriptors, %d folders of boxes, %d control groups, %d "
           "files\n",
           e->done, now.processes, now.descriptors, now.boxes, now.groups, now.files);
    if (was->processes == 0) {
        e->first = now;
        return;
    }
    if (more_than(was, &now)) {
        printf("FAIL something is left that was not there at first\n");
        e->grown = true;
    }
}

/* ---- killing the worker ---- */

static bool is_worker(int pid)
{
    char path[64], line[4096];
    snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
    FILE *f = fopen(path, "re");
    size_t got = f ? fread(line, 1, sizeof line - 1, f) : 0;
    if (f != NULL)
        fclose(f);
    line[got] = '\0';
    for (size_t i = 0; i < got; i += strlen(line + i) + 1)
        if (strcmp(line + i, "worker") == 0 || strcmp(line + i, "/ca/py/worker") == 0)
            return true;
    return false;
}

static void *kill_worker(void *wait_ms)
{
    static int pid[PIDS_MAX];
    usleep((useconds_t)(*(int *)wait_ms * 1000));
    int n = below(pid);
    for (int i = 0; i < n; i++)
        if (is_worker(pid[i]))
            kill(pid[i], SIGKILL);
    return NULL;
}

/* ---- gradings ---- */

static unsigned draw(struct endure *e, unsigned below_it)
{
    e->seed = e->seed * 1664525u + 1013904223u; /* Numerical Recipes' constants */
    return (e->seed >> 8) % below_it;
}

static const struct row *choose(struct endure *e)
{
    if (e->done < (long)e->n_rows)
        return &e->row[e->done];
    const struct row *r = NULL;
    do
        r = &e->row[draw(e, (unsigned)e->n_rows)];
    while ((e->done % HONEST_EVERY == 0) != str_starts(r->what, S("honest")));
    return r;
}

static void one(struct endure *e)
{
    const struct row *r = choose(e);
    struct err err = { 0 };
    struct verdict *v = calloc(1, sizeof *v);
    struct grade_options opt = { .until = GRADE_VERIFY, .seconds = 3, .first_ms = row_first_ms(r) };
    pthread_t killer;
    bool kills = e->done % KILL_EVERY == KILL_EVERY - 1;
    int wait_ms = (int)draw(e, KILL_WITHIN_MS);
    if (v == NULL || (kills && pthread_create(&killer, NULL, kill_worker, &wait_ms) != 0))
        exit(2);
    int64_t t0 = clock_ms();
    enum err_code code = exam_grade(e->x, &r->c, &opt, v, &err);
    int64_t ms = clock_ms() - t0;
    if (kills)
        pthread_join(killer, NULL);
    const char *status = code == OK ? verdict_status_name(v->status) : err_name(code);
    bool good = code == OK && row_wanted(r, status);
    free(v);
    if (stop_asked())
        return;
    if (str_starts(r->what, S("honest")) && !kills) {
        e->honest_ms += ms;
        e->honest++;
    }
    e->errors += code != OK;
    e->killed += kills;
    e->as_wanted += good;
    e->done++;
    if (!good)
        printf("FAIL %ld %s %s%s: %s\n", e->done, r->name, status, kills ? ", worker killed" : "",
               code == OK ? "another verdict" : err.text);
    if (e->log != NULL)
        fprintf(e->log, "%ld %s %s %d %d %lld\n", e->done, r->name, status, good, kills,
                (long long)ms);
}

static void all(struct endure *e, long until)
{
    long from = e->done;
    while (e->done < until && !stop_asked()) {
        one(e);
        bool once = e->done - from == (long)e->n_rows;
        if (!stop_asked() && (once || (e->first.processes > 0 && e->done % LOOK_EVERY == 0)))
            compare(e);
    }
    if (!stop_asked())
        compare(e);
}

static enum err_code log_open(struct endure *e, const char *path, struct err *err)
{
    long at;
    char name[128], status[64];
    int good, killed;
    long long ms;
    e->log = fopen(path, "a+e");
    if (e->log == NULL)
        return err_sys(err, "open '%s'", path);
    setvbuf(e->log, NULL, _IOLBF, 0);
    rewind(e->log);
    while (fscanf(e->log, "%ld %127s %63s %d %d %lld", &at, name, status, &good, &killed, &ms) ==
           6) {
        e->done = at;
        e->as_wanted += good;
        e->killed += killed;
    }
    e->seed += (unsigned)e->done;
    return OK;
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
    struct endure e = { .count = 1000, .seed = 1 };
    enum err_code code = OK;
    setvbuf(stdout, NULL, _IOLBF, 0);
    stop_install();
    if (argc < 5)
        return 2;
    enum target target = strcmp(argv[1], "cuda") == 0 ? TARGET_CUDA : TARGET_CPU;
    struct exam_config cfg = { .target = target,
                               .python = argv[2],
                               .threads = 2,
                               .mem_bytes = (int64_t)(target == TARGET_CUDA ? 8 : 1) << 30,
                               .say = say };
    for (int i = 5; i + 1 < argc && code == OK; i += 2) {
        if (strcmp(argv[i], "--count") == 0)
            e.count = atol(argv[i + 1]);
        else if (strcmp(argv[i], "--seed") == 0)
            e.seed = (unsigned)atol(argv[i + 1]);
        else if (strcmp(argv[i], "--log") == 0)
            code = log_open(&e, argv[i + 1], &err);
        else
            return 2;
    }
    if (code == OK && (code = task_read(&a, argv[3], &task, &err)) == OK &&
        (code = rows_read(&a, target, argv[4], &e.row, &e.n_rows, &err)) == OK &&
        (code = exam_open(&cfg, &task, &e.x, &err)) == OK)
        all(&e, e.count);
    exam_close(e.x);
    if (code != OK) {
        printf("endure: %s (%s)\n0 passed, 1 failed\n", err.text, err.hint);
        return 2;
    }
    printf("%ld gradings, %ld with a killed worker, %ld errors; an honest one took %.0f ms at the "
           "mean\n",
           e.done, e.killed, e.errors, e.honest > 0 ? (double)e.honest_ms / (double)e.honest : 0);
    printf("%ld passed, %ld failed\n", e.as_wanted, e.done - e.as_wanted + e.grown);
    return e.as_wanted == e.done && !e.grown ? 0 : 1;
}
