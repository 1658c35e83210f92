/* Memory and task limits: cgroup v2, cgroup v1, or a thread that watches resident memory. */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/own.h"
#include "sandbox/box_int.h"
#include "sys/clock.h"

#define V2_ROOT "/sys/fs/cgroup"
#define V1_MEMORY "/sys/fs/cgroup/memory"
#define V1_PIDS "/sys/fs/cgroup/pids"
#define NAME_HEAD "cuda-agent-"
#define WATCH_MS 10
#define TMP_ROUNDS 10 /* so many of them to a look at the size of /tmp */

static int text_write(const char *dir, const char *file, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, file);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t n = write(fd, text, strlen(text));
    own_fd_drop(&fd);
    return n == (ssize_t)strlen(text) ? 0 : -1;
}

static bool text_read(const char *dir, const char *file, char *ret, size_t room)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, file);
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, ret, room - 1);
    ret[n > 0 ? n : 0] = '\0';
    return n > 0;
}

static int64_t number_after(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    int64_t n = 0;
    for (at = at ? at + strlen(key) : ""; *at == ' '; at++)
        continue;
    for (; *at >= '0' && *at <= '9'; at++)
        n = n * 10 + (*at - '0');
    return n;
}

const char *limit_kind(void)
{
    char have[256];
    if (geteuid() != 0)
        return "watchdog";
    if (text_read(V2_ROOT, "cgroup.subtree_control", have, sizeof have) &&
        strstr(have, "memory") != NULL && access(V2_ROOT, W_OK) == 0)
        return "cgroup2";
    if (access(V1_MEMORY "/memory.limit_in_bytes", F_OK) == 0 && access(V1_MEMORY, W_OK) == 0)
        return "cgroup1";
    return "watchdog";
}

/* Folders of owners that died without cleaning up: the name holds the owner's pid. */
static void sweep_one(const char *root)
{
    DIR *d = opendir(root);
    for (struct dirent *e = d ? readdir(d) : NULL; e != NULL; e = readdir(d)) {
        char path[512];
        int64_t pid = number_after(e->d_name, NAME_HEAD);
        if (pid <= 0 || kill((pid_t)pid, 0) == 0 || errno != ESRCH)
            continue;
        snprintf(path, sizeof path, "%s/%s", root, e->d_name);
        rmdir(path);
    }
    if (d != NULL)
        closedir(d);
}

static void sweep(void)
{
    static bool swept;
    static const char *const roots[] = { V2_ROOT, V1_MEMORY, V1_PIDS };
    for (size_t i = 0; !swept && i < COUNT(roots); i++)
        sweep_one(roots[i]);
    swept = true;
}

static enum err_code folder(const char *root, char *ret, size_t room, struct err *err)
{
    static int serial;
    snprintf(ret, room, "%s/" NAME_HEAD "%d-%d", root, (int)getpid(), serial++);
    if (mkdir(ret, 0755) != 0 && errno != EEXIST)
        return err_sys(err, "make cgroup '%s'", ret);
    return OK;
}

enum err_code limit_create(const struct box_spec *spec, struct box_limit *ret, struct err *err)
{
    char bytes[32], tasks[32];
    *ret = (struct box_limit){ .by = limit_kind() };
    if (strcmp(ret->by, "watchdog") != 0)
        sweep();
    snprintf(bytes, sizeof bytes, "%lld", (long long)spec->mem_bytes);
    snprintf(tasks, sizeof tasks, "%d", spec->tasks_max);
    int bad = 0;
    if (strcmp(ret->by, "cgroup2") == 0) {
        if (folder(V2_ROOT, ret->memory_dir, sizeof ret->memory_dir, err) != OK)
            return err->code;
        if (spec->mem_bytes > 0) {
            bad = text_write(ret->memory_dir, "memory.max", bytes);
            text_write(ret->memory_dir, "memory.swap.max", "0"); /* absent without swap */
            text_write(ret->memory_dir, "memory.oom.group", "1");
        }
        if (spec->tasks_max > 0)
            text_write(ret->memory_dir, "pids.max", tasks); /* RLIMIT_NPROC stands behind it */
    } else if (strcmp(ret->by, "cgroup1") == 0) {
        if (folder(V1_MEMORY, ret->memory_dir, sizeof ret->memory_dir, err) != OK)
            return err->code;
        if (spec->mem_bytes > 0)
            bad = text_write(ret->memory_dir, "memory.limit_in_bytes", bytes);
        if (spec->tasks_max > 0 && access(V1_PIDS, W_OK) == 0 &&
            folder(V1_PIDS, ret->pids_dir, sizeof ret->pids_dir, err) == OK)
            text_write(ret->pids_dir, "pids.max", tasks);
    }
    return bad ? err_sys(err, "limit memory in '%s'", ret->memory_dir) : OK;
}

int limit_enter(const struct box_limit *l)
{
    if (l->memory_dir[0] != '\0' && text_write(l->memory_dir, "cgroup.procs", "0") != 0)
        return -1;
    if (l->pids_dir[0] != '\0' && text_write(l->pids_dir, "cgroup.procs", "0") != 0)
        return -1;
    return 0;
}

bool limit_was_hit(const struct box_limit *l)
{
    char text[1024];
    if (l->memory_dir[0] == '\0')
        return false;
    if (text_read(l->memory_dir, "memory.events", text, sizeof text))
        return number_after(text, "oom_kill ") > 0;
    return text_read(l->memory_dir, "memory.oom_control", text, sizeof text) &&
           number_after(text, "oom_kill ") > 0;
}

int64_t limit_peak(const struct box_limit *l)
{
    char text[64];
    if (l->memory_dir[0] == '\0')
        return 0;
    if (text_read(l->memory_dir, "memory.peak", text, sizeof text) ||
        text_read(l->memory_dir, "memory.max_usage_in_bytes", text, sizeof text))
        return number_after(text, "");
    return 0;
}

void limit_kill(const struct box_limit *l)
{
    if (l->memory_dir[0] != '\0')
        text_write(l->memory_dir, "cgroup.kill", "1");
}

/* The kernel lets go of a killed process a moment after it was reaped. */
static void folder_remove(char *dir)
{
    for (int i = 0; dir[0] != '\0' && rmdir(dir) != 0 && errno == EBUSY && i < 200; i++)
        poll(NULL, 0, 1);
    dir[0] = '\0';
}

void limit_destroy(struct box_limit *l)
{
    folder_remove(l->memory_dir);
    folder_remove(l->pids_dir);
}

static int64_t resident_below(pid_t pid, int depth);

/* Resident bytes of a process and its children, so many generations deep. */
static int64_t resident(pid_t pid, int depth)
{
    char dir[64], text[128];
    long pages = 0;
    snprintf(dir, sizeof dir, "/proc/%d", (int)pid);
    if (text_read(dir, "statm", text, sizeof text)) {
        const char *second = strchr(text, ' ');
        pages = second ? (long)number_after(second, " ") : 0;
    }
    return (int64_t)pages * sysconf(_SC_PAGESIZE) + resident_below(pid, depth);
}

static int64_t resident_below(pid_t pid, int depth)
{
    char dir[64], text[4096];
    int64_t sum = 0;
    snprintf(dir, sizeof dir, "/proc/%d/task/%d", (int)pid, (int)pid);
    if (depth > 0 && text_read(dir, "children", text, sizeof text))
        for (char *at = text; *at >= '0' && *at <= '9';) {
            sum += resident((pid_t)strtoll(at, &at, 10), depth - 1);
            at += *at == ' ';
        }
    return sum;
}

static bool outgrown(struct box *b, int64_t round)
{
    bool warded = b->rung > 1;
    if (b->mem_bytes > 0 && b->limit.memory_dir[0] == '\0') {
        int64_t now = warded ? resident_below(b->pid, 5) : resident(b->pid, 4);
        if (now > b->watch_peak)
            b->watch_peak = now;
        if (now > b->mem_bytes)
            return true;
    }
    return b->tmp[0] != '\0' && round % TMP_ROUNDS == 0 && folder_bytes(b->tmp) > b->tmp_bytes;
}

static void *watch_main(void *arg)
{
    struct box *b = arg;
    for (int64_t round = 1; !b->watch_stop; round++) {
        if (!b->watch_fired && outgrown(b, round)) {
            b->watch_fired = true;
            box_kill(b);
        }
        poll(NULL, 0, WATCH_MS);
    }
    return NULL;
}

enum err_code limit_watch(struct box *b, struct err *err)
{
    bool memory = b->mem_bytes > 0 && b->limit.memory_dir[0] == '\0';
    if (!memory && b->tmp[0] == '\0')
        return OK;
    errno = pthread_create(&b->watch, NULL, watch_main, b);
    if (errno != 0)
        return err_sys(err, "start the watchdog");
    b->watching = true;
    return OK;
}

int64_t limit_tasks(uid_t uid)
{
    int64_t sum = 0;
    DIR *d = opendir("/proc");
    for (struct dirent *e = d ? readdir(d) : NULL; e != NULL; e = readdir(d)) {
        char path[300];
        struct stat st;
        snprintf(path, sizeof path, "%s/task", e->d_name);
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9' && fstatat(dirfd(d), path, &st, 0) == 0 &&
            st.st_uid == uid)
            sum += (int64_t)st.st_nlink - 2; /* a folder for each thread */
    }
    if (d != NULL)
        closedir(d);
    return sum;
}

void limit_unwatch(struct box *b)
{
    if (!b->watching)
        return;
    b->watch_stop = true;
    pthread_join(b->watch, NULL);
    b->watching = false;
}
