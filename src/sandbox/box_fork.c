/* Boxes whose program is a fork of a server: asking for one, and the server's side.
 *
 * A request is one message: the plan's numbers, its texts one after another, and beside it the
 * descriptors. The server is trusted and so are its requests; sizes are checked all the same.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "core/own.h"
#include "sandbox/box_int.h"

#define MOUNTS_MAX 32
#define TEXT_MAX ((size_t)32 << 10)
#define FDS_MAX 4 /* report, channel, out, err */
#define ADOPT_MS 2000

enum { REPORT, CHANNEL, OUT, ERR };

struct request {
    struct box_spec spec; /* its pointers mean nothing on the other side */
    struct box_limit limit;
    pid_t owner;
    int rung;
    bool root;
    uid_t uid;
    int64_t tasks_max;
    bool has[FDS_MAX];
    struct {
        bool writable, optional, elsewhere;
    } mount[MOUNTS_MAX];
    size_t text_bytes;
    char text[TEXT_MAX]; /* dir, then from and at of each mount, each NUL-terminated */
};

/* The one request that a server holds. */
static struct request held;
static int held_fd[FDS_MAX] = { -1, -1, -1, -1 };

enum err_code box_adopt(struct err *err)
{
    return prctl(PR_SET_CHILD_SUBREAPER, 1) == 0 ? OK : err_sys(err, "adopt what is forked");
}

static bool text_put(struct request *r, const char *text)
{
    size_t n = strlen(text) + 1;
    if (n > TEXT_MAX - r->text_bytes)
        return false;
    memcpy(r->text + r->text_bytes, text, n);
    r->text_bytes += n;
    return true;
}

static bool request_fill(const struct plan *p, struct request *r)
{
    const struct box_spec *s = p->spec;
    *r = (struct request){ .spec = *s,
                           .limit = *p->limit,
                           .owner = getpid(),
                           .rung = p->rung,
                           .root = p->root,
                           .uid = p->uid,
                           .tasks_max = p->tasks_max };
    bool fits = s->n_mounts <= MOUNTS_MAX && text_put(r, s->dir ? s->dir : "/tmp");
    for (size_t i = 0; i < s->n_mounts && fits; i++) {
        const struct box_mount *m = &s->mounts[i];
        r->mount[i].writable = m->writable;
        r->mount[i].optional = m->optional;
        r->mount[i].elsewhere = m->at != NULL;
        fits = text_put(r, m->from) && text_put(r, m->at ? m->at : "");
    }
    return fits;
}

enum err_code fork_ask(const struct plan *p, struct err *err)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(FDS_MAX * sizeof(int))];
    } control = { 0 };
    own_mem struct request *r = malloc(sizeof *r);
    if (r == NULL)
        return err_sys(err, "allocate a request");
    if (!request_fill(p, r))
        return err_raise(err, ERR_LIMIT,
                         "a box with too many or too long mounts for a fork server");
    const int want[FDS_MAX] = { p->report, p->spec->channel_fd, p->spec->out_fd, p->spec->err_fd };
    int fd[FDS_MAX];
    size_t n = 0;
    for (int i = 0; i < FDS_MAX; i++) {
        r->has[i] = want[i] >= 0;
        if (r->has[i])
            fd[n++] = want[i];
    }
    struct iovec io = { r, sizeof *r };
    struct msghdr h = { .msg_iov = &io,
                        .msg_iovlen = 1,
                        .msg_control = &control,
                        .msg_controllen = CMSG_SPACE(n * sizeof(int)) };
    struct cmsghdr *c = CMSG_FIRSTHDR(&h);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(n * sizeof(int));
    memcpy(CMSG_DATA(c), fd, n * sizeof(int));
    ssize_t sent;
    do {
        sent = sendmsg(p->spec->fork_server, &h, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)sizeof *r ? OK : err_sys(err, "ask the fork server");
}

void box_fork_drop(void)
{
    for (int i = 0; i < FDS_MAX; i++) {
        own_fd_drop(&held_fd[i]);
        held_fd[i] = -1;
    }
}

int box_fork_wait(int sock)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(FDS_MAX * sizeof(int))];
    } control;
    struct iovec io = { &held, sizeof held };
    struct msghdr h = {
        .msg_iov = &io, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control
    };
    ssize_t n;
    do {
        n = recvmsg(sock, &h, MSG_CMSG_CLOEXEC);
    } while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof held)
        return 0;
    int fd[FDS_MAX];
    size_t got = 0, at = 0;
    struct cmsghdr *c = CMSG_FIRSTHDR(&h);
    if (c != NULL && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
        got = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(fd, CMSG_DATA(c), got * sizeof(int));
    }
    for (int i = 0; i < FDS_MAX; i++)
        held_fd[i] = held.has[i] && at < got ? fd[at++] : -1;
    return held_fd[REPORT] >= 0;
}

static const char *text_next(size_t *at)
{
    const char *text = held.text + *at;
    *at += strnlen(text, TEXT_MAX - *at) + 1;
    return *at <= TEXT_MAX ? text : "";
}

static void spec_fill(struct box_mount mounts[MOUNTS_MAX])
{
    static const char *const none[] = { "/", NULL };
    struct box_spec *s = &held.spec;
    size_t at = 0;
    held.text[TEXT_MAX - 1] = '\0';
    s->argv = s->env = none;
    s->dir = text_next(&at);
    s->n_mounts = s->n_mounts <= MOUNTS_MAX ? s->n_mounts : MOUNTS_MAX;
    for (size_t i = 0; i < s->n_mounts; i++) {
        mounts[i] = (struct box_mount){ .from = text_next(&at),
                                        .writable = held.mount[i].writable,
                                        .optional = held.mount[i].optional };
        const char *inside = text_next(&at);
        mounts[i].at = held.mount[i].elsewhere ? inside : NULL;
    }
    s->mounts = mounts;
    s->stdin_fd = -1;
    s->channel_fd = held_fd[CHANNEL];
    s->out_fd = held_fd[OUT];
    s->err_fd = held_fd[ERR];
}

/* Our parent ends at once, and who asked becomes it. */
static void await_adoption(pid_t owner)
{
    for (int ms = 0; getppid() != owner && ms < ADOPT_MS; ms++)
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    if (getppid() != owner)
        _exit(120);
}

int box_fork_enter(void)
{
    static struct box_mount mounts[MOUNTS_MAX];
    spec_fill(mounts);
    await_adoption(held.owner);
    struct plan p = { .spec = &held.spec,
                      .limit = &held.limit,
                      .rung = held.rung,
                      .root = held.root,
                      .forked = true,
                      .uid = held.uid,
                      .tasks_max = held.tasks_max,
                      .report = held_fd[REPORT] };
    launch_forked(&p, held.owner);
    return held.has[CHANNEL] ? 3 : -1;
}
