#include "harness/fork_server.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/own.h"
#include "harness/worker.h"
#include "sandbox/box.h"
#include "sys/file.h"

#define PARK 100

struct fork_server {
    struct arena arena;
    pid_t pid;
    int sock, log; /* owned */
    char words[400];
};

static const char *const *environment(struct arena *a, const struct fork_server_config *cfg)
{
    const char **env = arena_new(a, const char *, PYTHON_ENV_MAX + 6);
    size_t n = 0;
    env[n++] = "PATH=/usr/local/nvidia/bin:/usr/bin:/bin";
    env[n++] = "USER=runner";
    env[n++] = "PYTHONDONTWRITEBYTECODE=1";
    env[n++] = "CUDA_CACHE_DISABLE=1";
    env[n++] = "CUDA_MODULE_LOADING=LAZY";
    worker_python_env(a, cfg->target, cfg->threads, cfg->bind, env, &n);
    return env;
}

/* In the child: descriptors 0 to 4 and nothing else, then exec. */
static _Noreturn void become(const char *const *argv, const char *const *env, const char *dir,
                             const int fd[3])
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int want[5] = { null, null, fd[2], fd[0], fd[1] };
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    setsid();
    for (int i = 0; i < 5; i++)
        want[i] = fcntl(want[i], F_DUPFD_CLOEXEC, PARK);
    for (int i = 0; i < 5; i++)
        if (want[i] < 0 || dup2(want[i], i) < 0)
            _exit(126);
    syscall(SYS_close_range, 5, ~0u, CLOSE_RANGE_CLOEXEC);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (chdir(dir) == 0)
        execve(argv[0], (char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)env);
    _exit(127);
}

static enum err_code task_memory(struct str source, int *ret, struct err *err)
{
    own_fd fd = memfd_create("task", MFD_CLOEXEC);
    if (fd < 0 || write(fd, source.ptr, source.len) != (ssize_t)source.len ||
        lseek(fd, 0, SEEK_SET) != 0)
        return err_sys(err, "keep the task for a fork server");
    *ret = own_fd_take(&fd);
    return OK;
}

static enum err_code spawn(const struct fork_server_config *cfg, struct fork_server *f, int theirs,
                           struct err *err)
{
    const char *share = NULL, *program = NULL;
    own_fd task = -1;
    if (share_dir(&f->arena, &share, err) != OK || program_dir(&f->arena, &program, err) != OK ||
        task_memory(cfg->task, &task, err) != OK || box_adopt(err) != OK)
        return err->code;
    const char *argv[] = { cfg->python,  "-E",
                           "-s",         "-m",
                           "forkserver", path_join(&f->arena, program, "libca_torch.so"),
                           "4",          target_name(cfg->target),
                           NULL };
    const char *const *env = environment(&f->arena, cfg);
    const char *dir = path_join(&f->arena, share, "py");
    const int fd[3] = { theirs, task, f->log };
    f->pid = fork();
    if (f->pid == 0)
        become(argv, env, dir, fd);
    return f->pid < 0 ? err_sys(err, "start a fork server") : OK;
}

enum err_code fork_server_open(const struct fork_server_config *cfg, struct fork_server **ret,
                               struct err *err)
{
    int pair[2];
    struct fork_server *f = calloc(1, sizeof *f);
    if (f == NULL)
        return err_sys(err, "allocate a fork server");
    f->pid = -1;
    f->sock = -1;
    f->log = memfd_create("fork server", MFD_CLOEXEC);
    enum err_code code = OK;
    if (f->log < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        code = err_sys(err, "make a socket pair");
    } else {
        f->sock = pair[0];
        code = spawn(cfg, f, pair[1], err);
        close(pair[1]);
    }
    if (code != OK) {
        fork_server_close(f);
        return code;
    }
    *ret = f;
    return OK;
}

int fork_server_socket(const struct fork_server *f)
{
    return f->sock;
}

const char *fork_server_last_words(struct fork_server *f)
{
    if (f->pid <= 0 || waitpid(f->pid, NULL, WNOHANG) != f->pid)
        return "";
    f->pid = -1;
    off_t end = lseek(f->log, 0, SEEK_END), from = end > 300 ? end - 300 : 0;
    ssize_t n = pread(f->log, f->words, 300, from);
    f->words[n > 0 ? n : 0] = '\0';
    str_plain(f->words);
    return f->words[0] ? f->words : "it said nothing";
}

void fork_server_close(struct fork_server *f)
{
    if (f == NULL)
        return;
    own_fd_drop(&f->sock);
    if (f->pid > 0) {
        kill(f->pid, SIGKILL); /* it holds nothing; what it forked is its starter's */
        while (waitpid(f->pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    own_fd_drop(&f->log);
    arena_fini(&f->arena);
    free(f);
}
