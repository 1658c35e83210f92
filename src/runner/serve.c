/* The conversation of include/ca_runner.h, until its other end is gone. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runner/candidate_code.h"

void answer(struct ca_msg *m, enum ca_status status, const char *fmt, ...)
{
    va_list args;
    m->status = (int32_t)status;
    va_start(args, fmt);
    vsnprintf(m->text, sizeof m->text, fmt, args);
    va_end(args);
}

/* One datagram and at most one descriptor; -1 at the end of the conversation. */
static int receive(struct ca_msg *m, int *ret_fd)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec io = { m, sizeof *m };
    struct msghdr h = {
        .msg_iov = &io,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = CMSG_LEN(sizeof(int)) /* no room for two */
    };
    ssize_t n;
    do {
        n = recvmsg(CA_RUNNER_FD, &h, MSG_CMSG_CLOEXEC);
    } while (n < 0 && errno == EINTR);
    *ret_fd = -1;
    if (n <= 0)
        return -1;
    struct cmsghdr *c = CMSG_FIRSTHDR(&h);
    if (c != NULL && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
        c->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(ret_fd, CMSG_DATA(c), sizeof(int));
    if (n != (ssize_t)sizeof *m || (h.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) ||
        m->magic != CA_MSG_MAGIC)
        m->op = 0;
    return 0;
}

static void handle(struct runner *r, struct ca_msg *m, int fd)
{
    m->status = CA_DONE;
    m->text[0] = '\0';
    switch (m->op) {
    case CA_OP_HELLO:
        runner_hello(r, m);
        break;
    case CA_OP_SLAB:
        runner_slab(r, m, fd);
        break;
    case CA_OP_PLAN:
        runner_plan(r, m, fd);
        break;
    case CA_OP_CODE:
        runner_code(r, m, fd);
        break;
    case CA_OP_SIZES:
        runner_sizes(r, m);
        break;
    case CA_OP_SETUP:
        runner_setup(r, m);
        break;
    case CA_OP_GO:
        runner_go(r, m);
        break;
    case CA_OP_BYE:
        break;
    default:
        answer(m, CA_REFUSED, "unknown message");
    }
}

int runner_serve(const struct runner_host *host)
{
    static struct runner r;
    struct ca_msg m;
    int fd;
    r.host = host;
    while (receive(&m, &fd) == 0) {
        handle(&r, &m, fd);
        if (fd >= 0)
            close(fd);
        m.magic = CA_MSG_MAGIC;
        if (send(CA_RUNNER_FD, &m, sizeof m, MSG_NOSIGNAL) != (ssize_t)sizeof m)
            return 1;
        if (m.op == CA_OP_BYE)
            break;
    }
    return 0;
}
