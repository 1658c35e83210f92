/* What a worker writes on its socket, in pieces that the first byte chooses: frame after frame
 * until the end or what is none, with descriptors that nobody asked for. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/json.h"
#include "harness/frame.h"
#include "sys/clock.h"

#define MOST 65536

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* False when the socket, or the kernel's count of descriptors on their way, is full. */
static bool say(int to, const uint8_t *data, size_t size, bool with_fd)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = { 0 };
    struct iovec io = { (void *)(uintptr_t)data, size };
    struct msghdr h = { .msg_iov = &io, .msg_iovlen = 1 };
    if (with_fd) {
        h.msg_control = &control;
        h.msg_controllen = sizeof control;
        struct cmsghdr *c = CMSG_FIRSTHDR(&h);
        *c = (struct cmsghdr){ CMSG_LEN(sizeof to), SOL_SOCKET, SCM_RIGHTS };
        memcpy(CMSG_DATA(c), &(int){ STDERR_FILENO },
               sizeof(int)); /* not `to`: it would never end */
    }
    return sendmsg(to, &h, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int pair[2];
    if (size < 2 || size > MOST || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
        return 0;
    size_t piece = data[0] + 1;
    bool with_fd = data[1] % 2;
    bool room = true;
    for (size_t at = 2; at < size && room; at += piece)
        room = say(pair[0], data + at, size - at < piece ? size - at : piece, with_fd && at == 2);
    close(pair[0]);
    enum err_code code = OK;
    while (code == OK) {
        own_json j = NULL;
        struct err err = { 0 };
        struct worker_fds fds = { 0 };
        code = frame_receive(pair[1], clock_ms() + 1000, data[1] % 4 == 3 ? &fds : NULL, &j, &err);
        for (size_t i = 0; i < fds.n; i++)
            close(fds.fd[i]);
        if (code != OK && code != ERR_WORKER && code != ERR_FORMAT && code != ERR_LIMIT)
            __builtin_trap();
    }
    close(pair[1]);
    return 0;
}
