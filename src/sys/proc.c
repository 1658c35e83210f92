#include "sys/proc.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/own.h"
#include "sys/clock.h"

#define READ_CHUNK 65536

extern char **environ;

struct pipe_pair {
    int read, write;
};

static void pipe_close(struct pipe_pair *p)
{
    own_fd_drop(&p->read);
    own_fd_drop(&p->write);
}
#define own_pipe __attribute__((cleanup(pipe_close))) struct pipe_pair

static enum err_code pipe_open(struct pipe_pair *p, struct err *err)
{
    int fd[2];
    if (pipe2(fd, O_CLOEXEC) != 0)
        return err_sys(err, "make a pipe");
    *p = (struct pipe_pair){ fd[0], fd[1] };
    return OK;
}

const char *proc_find(struct arena *a, const char *name)
{
    if (strchr(name, '/') != NULL)
        return access(name, X_OK) == 0 ? name : NULL;
    struct str rest = str_from(getenv("PATH")), part;
    if (rest.len == 0)
        rest = S("/usr/local/bin:/usr/bin:/bin");
    while (str_cut(&rest, ':', &part)) {
        const char *path = arena_fmt(a, "%.*s/%s", STR_FMT(part), name);
        if (access(path, X_OK) == 0)
            return path;
    }
    return NULL;
}

/* In the child, between fork and exec: nothing here allocates. */
static _Noreturn void child_exec(const struct proc_spec *spec, const char *path, int out, int errs)
{
    int null = open("/dev/null", O_RDONLY);
    setpgid(0, 0);
    signal(SIGPIPE, SIG_DFL);
    if (null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(errs, 2) < 0)
        _exit(127);
    if (spec->dir != NULL && chdir(spec->dir) != 0)
        _exit(127);
    execve(path, (char *const *)(uintptr_t)spec->argv,
           spec->env ? (char *const *)(uintptr_t)spec->env : environ);
    _exit(127);
}

/* Read what is there; false when the pipe has ended. Past max the bytes are dropped. */
static bool drain(int fd, struct buf *b, bool *cut)
{
    char chunk[READ_CHUNK];
    ssize_t n = read(fd, chunk, sizeof chunk);
    if (n < 0)
        return errno == EINTR || errno == EAGAIN;
    size_t room = b->max - b->len, keep = (size_t)n < room ? (size_t)n : room;
    *cut = *cut || keep < (size_t)n;
    buf_add(b, (struct str){ chunk, keep });
    return n > 0;
}

/* Collect both streams until they end or the time is up. */
static void collect(int out_fd, int err_fd, int64_t until_ms, struct proc_result *r,
                    struct buf *out, struct buf *errs)
{
    struct pollfd p[2] = { { .fd = out_fd, .events = POLLIN }, { .fd = err_fd, .events = POLLIN } };
    while (p[0].fd >= 0 || p[1].fd >= 0) {
        int64_t left = until_ms - clock_ms();
        if (left <= 0) {
            r->timed_out = true;
            return;
        }
        if (poll(p, 2, (int)(left < 1000 ? left : 1000)) <= 0)
            continue;
        if (p[0].revents != 0 && !drain(out_fd, out, &r->out_cut))
            p[0].fd = -1;
        if (p[1].revents != 0 && !drain(err_fd, errs, &r->out_cut))
            p[1].fd = -1;
    }
}

/* The child may close its streams and live on: wait for its end within the limit, too. */
static int reap(pid_t pid, int64_t until_ms, bool *timed_out)
{
    int status = 0;
    while (!*timed_out && waitpid(pid, &status, WNOHANG) == 0) {
        if (clock_ms() >= until_ms)
            *timed_out = true;
        else
            poll(NULL, 0, 1);
    }
    kill(-pid, SIGKILL); /* what it left running in its group */
    if (*timed_out) {
        kill(pid, SIGKILL);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            continue;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

enum err_code proc_run(struct arena *a, const struct proc_spec *spec, struct proc_result *ret,
                       struct err *err)
{
    struct proc_result r = { 0 };
    int64_t start = clock_ms(), until = start + spec->wall_ms;
    own_arena tmp = { 0 };
    const char *path = proc_find(&tmp, spec->argv[0]);
    if (path == NULL) {
        *ret = (struct proc_result){ .status = 127 };
        return OK;
    }
    own_pipe out = { -1, -1 };
    own_pipe errs = { -1, -1 };
    if (pipe_open(&out, err) != OK || pipe_open(&errs, err) != OK)
        return err->code;
    pid_t pid = fork();
    if (pid < 0)
        return err_sys(err, "fork for '%s'", spec->argv[0]);
    if (pid == 0)
        child_exec(spec, path, out.write, errs.write);
    own_fd_drop(&out.write);
    own_fd_drop(&errs.write);
    out.write = errs.write = -1;

    struct buf out_text = { .arena = a, .max = spec->out_max };
    struct buf err_text = { .arena = a, .max = spec->out_max };
    collect(out.read, errs.read, until, &r, &out_text, &err_text);
    r.status = reap(pid, until, &r.timed_out);
    r.out = (struct str){ out_text.ptr ? out_text.ptr : "", out_text.len };
    r.err_out = (struct str){ err_text.ptr ? err_text.ptr : "", err_text.len };
    r.wall_ms = clock_ms() - start;
    *ret = r;
    return OK;
}
