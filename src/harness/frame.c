#include "harness/frame.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/json.h"
#include "sys/clock.h"
#include "sys/stop.h"

enum err_code frame_send(int sock, const json_t *what, struct err *err)
{
    own_mem char *text = json_dumps(what, JSON_COMPACT);
    if (text == NULL)
        return err_raise(err, ERR_STATE, "a question that is no JSON");
    size_t size = strlen(text), whole = size + 4;
    own_mem unsigned char *frame = malloc(whole);
    if (frame == NULL)
        return err_sys(err, "allocate a frame");
    for (int i = 0; i < 4; i++)
        frame[i] = (unsigned char)(size >> 8 * i);
    memcpy(frame + 4, text, size);
    for (size_t at = 0; at < whole;) {
        ssize_t n = send(sock, frame + at, whole - at, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return err_raise(err, ERR_WORKER, "closed");
        at += (size_t)n;
    }
    return OK;
}

static void keep_fds(struct msghdr *h, struct worker_fds *fds)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c != NULL; c = CMSG_NXTHDR(h, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            if (fds != NULL && fds->n < WORKER_FDS_MAX)
                fds->fd[fds->n++] = fd;
            else
                close(fd);
        }
    }
}

/* `size` bytes within the time; descriptors may ride on any of them. */
static enum err_code receive(int sock, unsigned char *to, size_t size, int64_t until,
                             struct worker_fds *fds, struct err *err)
{
    for (size_t got = 0; got < size;) {
        union {
            struct cmsghdr head;
            char room[CMSG_SPACE(WORKER_FDS_MAX * sizeof(int))];
        } control;
        struct iovec io = { to + got, size - got };
        struct msghdr h = { .msg_iov = &io,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof control };
        struct pollfd p = { .fd = sock, .events = POLLIN };
        int64_t left = until - clock_ms();
        if (left <= 0)
            return err_raise(err, ERR_TIMEOUT, "no answer in time");
        int ready = poll(&p, 1, (int)(left < 1000 ? left : 1000));
        if (stop_check(err) != OK)
            return err->code;
        if (ready <= 0)
            continue;
        ssize_t n = recvmsg(sock, &h, MSG_CMSG_CLOEXEC);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return err_raise(err, ERR_WORKER, "closed");
        keep_fds(&h, fds);
        got += (size_t)n;
    }
    return OK;
}

enum err_code frame_receive(int sock, int64_t until, struct worker_fds *fds, json_t **ret,
                            struct err *err)
{
    unsigned char head[4];
    if (receive(sock, head, sizeof head, until, fds, err) != OK)
        return err->code;
    size_t size = head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
    if (size > FRAME_MAX)
        return err_raise(err, ERR_FORMAT, "%zu bytes", size);
    own_mem unsigned char *body = malloc(size + 1);
    if (body == NULL)
        return err_sys(err, "allocate an answer");
    if (receive(sock, body, size, until, fds, err) != OK)
        return err->code;
    return json_parse((struct str){ (char *)body, size }, FRAME_MAX, ret, err);
}
