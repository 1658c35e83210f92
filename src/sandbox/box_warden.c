/* Without a pid namespace nothing ends a whole tree at once: a process of ours stays beside the
 * program, adopts what loses its parent, and lets nothing survive it.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/own.h"
#include "sandbox/box_int.h"

static void awaited(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGCHLD);
    sigaddset(set, SIGTERM);
}

void warden_prepare(void)
{
    sigset_t set;
    awaited(&set);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGCHLD, SIG_DFL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* The parent of a process, from the fourth field of its stat; 0 where it is gone. */
static pid_t parent_of(const char *pid)
{
    char path[300], text[512];
    snprintf(path, sizeof path, "/proc/%s/stat", pid);
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    const char *end = strrchr(text, ')');
    return end != NULL && strlen(end) > 4 ? (pid_t)strtoll(end + 4, NULL, 10) : 0;
}

static void kill_children(void)
{
    DIR *d = opendir("/proc");
    pid_t me = getpid();
    for (struct dirent *e = d ? readdir(d) : NULL; e != NULL; e = readdir(d))
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9' && parent_of(e->d_name) == me)
            kill((pid_t)strtoll(e->d_name, NULL, 10), SIGKILL);
    if (d != NULL)
        closedir(d);
}

/* What was started by those that we end becomes ours, until there is nobody. */
static void end_all(void)
{
    do
        kill_children();
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR);
}

/* The caller reads our end as the program's. */
static _Noreturn void end_as(int status)
{
    struct rlimit none = { 0, 0 };
    if (WIFEXITED(status))
        _exit(WEXITSTATUS(status));
    setrlimit(RLIMIT_CORE, &none);
    signal(WTERMSIG(status), SIG_DFL);
    sigset_t set;
    sigfillset(&set);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    kill(getpid(), WTERMSIG(status));
    _exit(128 + WTERMSIG(status));
}

_Noreturn void warden_main(pid_t program)
{
    /* Our copies of its channel and pipes would keep them open after its end. */
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3 && null >= 0; fd++)
        dup2(null, fd);
    syscall(SYS_close_range, 3, ~0u, 0);
    sigset_t set;
    awaited(&set);
    for (;;) {
        int status;
        int got = sigwaitinfo(&set, NULL);
        if (got == SIGTERM) {
            /* Where its namespaces are its own, /proc need not show it, and nothing outlives it. */
            kill(program, SIGKILL);
            end_all();
            end_as(SIGKILL); /* as a wait status: killed by it */
        }
        for (pid_t pid = waitpid(-1, &status, WNOHANG); pid > 0;
             pid = waitpid(-1, &status, WNOHANG))
            if (pid == program) {
                end_all();
                end_as(status);
            }
    }
}
