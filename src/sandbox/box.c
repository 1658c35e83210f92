#include "sandbox/box.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/own.h"
#include "sandbox/box_int.h"
#include "sys/clock.h"

#define BOX_MAGIC 0x62307821u

/* What only a box without a root of its own needs: names, a folder for /tmp. */
static enum err_code start_in_company(const struct box_spec *spec, struct box *b, struct launch *l,
                                      struct err *err)
{
    own_arena a = { 0 };
    if (own_tmp(l->uid, b->tmp, sizeof b->tmp, err) != OK)
        return err->code;
    struct box_spec outside = names_outside(&a, spec, b->tmp);
    return launch(&outside, l, err);
}

/* A rule of Landlock is bound to the entry of /proc as it is now, which the kernel would make anew
 * when nobody holds it. */
static int hold_proc(pid_t program)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d", (int)program);
    return open(path, O_PATH | O_CLOEXEC);
}

static enum err_code start_at(int rung, const struct box_spec *spec, struct box **ret,
                              struct err *err)
{
    assert(spec->argv[0][0] == '/' && spec->env != NULL && spec->tmp_bytes > 0);
    assert(spec->role != BOX_WORKSPACE || (!spec->gpu && spec->channel_fd < 0));
    struct box *b = calloc(1, sizeof *b);
    if (b == NULL)
        return err_sys(err, "allocate a box");
    *b = (struct box){ .magic = BOX_MAGIC,
                       .rung = rung,
                       .warded = rung > 1 || spec->fork_server > 0,
                       .role = spec->role,
                       .mem_bytes = spec->mem_bytes,
                       .tmp_bytes = spec->tmp_bytes,
                       .started_ms = clock_ms(),
                       .pid = -1,
                       .program = -1,
                       .pid_fd = -1,
                       .proc_fd = -1 };
    struct launch l = { rung, own_uid(spec), &b->limit, -1, -1 };
    enum err_code code = own_folders(spec, l.uid, err);
    if (code == OK)
        code = limit_create(spec, &b->limit, err);
    if (code == OK)
        code = rung > 1 ? start_in_company(spec, b, &l, err) : launch(spec, &l, err);
    if (code == OK) {
        b->pid = l.pid;
        b->program = l.program;
        b->proc_fd = rung > 1 ? hold_proc(l.program) : -1;
        b->pid_fd = (int)syscall(SYS_pidfd_open, b->pid, 0);
        code = b->pid_fd < 0 ? err_sys(err, "watch the box") : limit_watch(b, err);
    }
    if (code != OK) {
        box_destroy(b);
        return code;
    }
    *ret = b;
    return OK;
}

enum err_code box_start(const struct box_spec *spec, struct box **ret, struct err *err)
{
    struct box_facts facts;
    if (box_probe(&facts, err) != OK)
        return err->code;
    return start_at(facts.rung, spec, ret, err);
}

/* Without a warden it is the first process of its namespace, all the others go with it. */
void box_kill(const struct box *b)
{
    kill(b->pid, b->warded ? SIGTERM : SIGKILL);
}

pid_t box_pid(const struct box *b)
{
    return b->program;
}

int box_end_fd(const struct box *b)
{
    return b->pid_fd;
}

static char thread_state(const char *task_dir, const char *tid)
{
    char path[128], text[512];
    snprintf(path, sizeof path, "%s/%s/stat", task_dir, tid);
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    const char *end = strrchr(text, ')');
    return end != NULL && end[1] == ' ' ? end[2] : 'X';
}

/* Every thread stopped, or ended. */
static bool all_stopped(pid_t pid)
{
    char dir[64];
    snprintf(dir, sizeof dir, "/proc/%d/task", (int)pid);
    DIR *d = opendir(dir);
    bool yes = true;
    for (struct dirent *e = d ? readdir(d) : NULL; e != NULL && yes; e = readdir(d)) {
        if (e->d_name[0] == '.')
            continue;
        char state = thread_state(dir, e->d_name);
        yes = state == 'T' || state == 'X' || state == 'Z';
    }
    if (d != NULL)
        closedir(d);
    return yes;
}

/* A thread must run to stop: who spins here on its core keeps it from that for 3 ms. */
static void give_way(void)
{
    prctl(PR_SET_TIMERSLACK, 1000); /* ns; 50 us else */
    nanosleep(&(struct timespec){ .tv_nsec = 10000 }, NULL);
}

/* Twice: a thread that was seen stopped may have been woken by one that was not yet, and that one
 * stopped since. Who is seen stopped in the second look, too, has nobody left to wake him. */
bool box_paused(const struct box *b)
{
    return b->reaped || (all_stopped(b->program) && all_stopped(b->program));
}

/* The signal is sent until it has worked: a SIGCONT of the program's own takes it back while it
 * is on its way. */
bool box_pause(struct box *b)
{
    int64_t until = clock_ms() + BOX_PAUSE_MS;
    if (b->reaped || kill(b->program, SIGSTOP) != 0)
        return true;
    while (!box_paused(b)) {
        if (clock_ms() > until)
            return false;
        give_way();
        kill(b->program, SIGSTOP);
    }
    return true;
}

void box_resume(struct box *b)
{
    if (!b->reaped)
        kill(b->program, SIGCONT);
}

static void reap(struct box *b)
{
    while (!b->reaped && waitpid(b->pid, &b->wait_status, 0) < 0 && errno == EINTR)
        continue;
    b->reaped = true;
}

static struct box_result result_of(const struct box *b, bool timed_out)
{
    struct box_result r = { .wall_ms = clock_ms() - b->started_ms,
                            .mem_peak_bytes = limit_peak(&b->limit) };
    if (r.mem_peak_bytes == 0)
        r.mem_peak_bytes = b->watch_peak;
    bool exited = WIFEXITED(b->wait_status);
    r.end = exited ? BOX_EXITED : BOX_SIGNALLED;
    r.status = exited ? WEXITSTATUS(b->wait_status) : WTERMSIG(b->wait_status);
    if (limit_was_hit(&b->limit) || b->watch_fired)
        r.end = BOX_OUT_OF_MEMORY;
    else if (timed_out)
        r.end = BOX_TIMED_OUT;
    return r;
}

enum err_code box_wait(struct box *b, int64_t wall_ms, struct box_result *ret, struct err *err)
{
    int64_t until = clock_ms() + wall_ms;
    bool timed_out = false;
    struct pollfd p = { .fd = b->pid_fd, .events = POLLIN };
    while (!b->reaped) {
        int64_t left = wall_ms < 0 ? 60000 : until - clock_ms();
        int n = left > 0 ? poll(&p, 1, (int)(left < 60000 ? left : 60000)) : 0;
        if (n > 0)
            break;
        if (n < 0 && errno != EINTR)
            return err_sys(err, "wait for a box");
        if (wall_ms >= 0 && clock_ms() >= until) {
            timed_out = true;
            box_kill(b);
            break;
        }
    }
    reap(b);
    *ret = result_of(b, timed_out);
    return OK;
}

void box_destroy(struct box *b)
{
    if (b == NULL)
        return;
    assert(b->magic == BOX_MAGIC);
    limit_unwatch(b);
    if (b->pid > 0 && !b->reaped) {
        box_kill(b);
        reap(b);
    }
    limit_kill(&b->limit);
    limit_destroy(&b->limit);
    own_tmp_remove(b->tmp);
    own_fd_drop(&b->pid_fd);
    own_fd_drop(&b->proc_fd);
    b->magic = 0;
    free(b);
}

struct stream {
    int fd;
    struct buf text;
};

static void stream_read(struct stream *s, struct pollfd *p, bool *cut)
{
    char chunk[65536];
    ssize_t n = p->revents != 0 ? read(s->fd, chunk, sizeof chunk) : -1;
    if (n == 0 || (n < 0 && p->revents != 0 && errno != EINTR && errno != EAGAIN))
        p->fd = -1;
    if (n <= 0)
        return;
    size_t room = s->text.max - s->text.len, keep = (size_t)n < room ? (size_t)n : room;
    *cut = *cut || keep < (size_t)n;
    buf_add(&s->text, (struct str){ chunk, keep });
}

/* Both streams until they end, or the program has ended, or the time is up. */
static void collect(struct box *b, struct stream s[2], int64_t until, bool *cut)
{
    struct pollfd p[3] = { { s[0].fd, POLLIN, 0 },
                           { s[1].fd, POLLIN, 0 },
                           { b->pid_fd, POLLIN, 0 } };
    while (p[0].fd >= 0 || p[1].fd >= 0) {
        int64_t left = until - clock_ms();
        if (left <= 0)
            return;
        if (poll(p, 3, (int)(left < 1000 ? left : 1000)) <= 0)
            continue;
        bool quiet = p[0].revents == 0 && p[1].revents == 0;
        if (p[2].revents != 0 && quiet)
            return; /* ended, and nothing is left in the pipes */
        stream_read(&s[0], &p[0], cut);
        stream_read(&s[1], &p[1], cut);
    }
}

enum err_code box_run_at(int rung, struct arena *a, const struct box_spec *spec, int64_t wall_ms,
                         size_t out_max, struct box_output *ret, struct err *err)
{
    int out[2], errs[2];
    char tmp[sizeof((struct box *)0)->tmp];
    int64_t until = clock_ms() + wall_ms;
    if (pipe2(out, O_CLOEXEC) != 0)
        return err_sys(err, "make a pipe");
    own_fd out_r = out[0], out_w = out[1];
    if (pipe2(errs, O_CLOEXEC) != 0)
        return err_sys(err, "make a pipe");
    own_fd err_r = errs[0], err_w = errs[1];
    struct box_spec boxed = *spec;
    boxed.out_fd = out_w;
    boxed.err_fd = err_w;
    struct box *b = NULL;
    if (start_at(rung, &boxed, &b, err) != OK)
        return err->code;
    own_fd_drop(&out_w), out_w = -1;
    own_fd_drop(&err_w), err_w = -1;

    struct stream s[2] = { { out_r, { .arena = a, .max = out_max } },
                           { err_r, { .arena = a, .max = out_max } } };
    struct box_output r = { 0 };
    collect(b, s, until, &r.out_cut);
    int64_t left = until - clock_ms();
    enum err_code code = box_wait(b, left > 0 ? left : 0, &r.result, err);
    memcpy(tmp, b->tmp, sizeof tmp);
    box_destroy(b);
    if (code != OK)
        return code;
    r.out = (struct str){ s[0].text.ptr ? s[0].text.ptr : "", s[0].text.len };
    r.err_out = (struct str){ s[1].text.ptr ? s[1].text.ptr : "", s[1].text.len };
    if (rung > 1) {
        r.out = names_inside(a, spec, tmp, r.out);
        r.err_out = names_inside(a, spec, tmp, r.err_out);
    }
    *ret = r;
    return OK;
}

enum err_code box_run(struct arena *a, const struct box_spec *spec, int64_t wall_ms, size_t out_max,
                      struct box_output *ret, struct err *err)
{
    struct box_facts facts;
    if (box_probe(&facts, err) != OK)
        return err->code;
    return box_run_at(facts.rung, a, spec, wall_ms, out_max, ret, err);
}
