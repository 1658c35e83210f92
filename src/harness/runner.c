#include "harness/runner.h"

#include <ctype.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/own.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/stop.h"

#define RUNNER_TMP ((int64_t)64 << 20)
#define RUNNER_TASKS 512
#define FOLDERS_MAX 12

struct runner {
    struct box *box;
    int sock; /* owned */
    uint32_t seq;
    int pending; /* answers of runner_start that have not been read */
    bool dead;
};

static enum err_code post(struct runner *r, struct ca_msg *m, int fd, struct err *err)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = { 0 };
    struct iovec io = { m, sizeof *m };
    struct msghdr h = { .msg_iov = &io, .msg_iovlen = 1 };
    m->magic = CA_MSG_MAGIC;
    m->seq = ++r->seq;
    if (fd >= 0) {
        h.msg_control = &control;
        h.msg_controllen = sizeof control;
        struct cmsghdr *c = CMSG_FIRSTHDR(&h);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(c), &fd, sizeof fd);
    }
    ssize_t n;
    do {
        n = sendmsg(r->sock, &h, MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && errno != EPIPE && errno != ECONNRESET)
        return err_sys(err, "send to the runner");
    return OK; /* a dead runner shows when its answer is awaited */
}

static enum err_code box_up(const struct runner_config *cfg, int theirs, struct runner *r,
                            struct err *err)
{
    own_arena tmp = { 0 };
    const char *program = NULL;
    if (program_dir(&tmp, &program, err) != OK)
        return err->code;
    const char *at = path_join(&tmp, program, "ca-runner");
    const char *root = cfg->cuda_root ? cfg->cuda_root : "/nonexistent";
    struct box_mount mounts[FOLDERS_MAX + 2] = { { at, "/ca/ca-runner", false, false },
                                                 { root, NULL, false, true } };
    size_t n = str_starts(str_from(root), S("/usr/")) ? 1 : 2;
    for (size_t i = 0; i < cfg->n_folders && n < COUNT(mounts); i++)
        mounts[n++] = (struct box_mount){ cfg->folder[i], NULL, false, false };
    const char *argv[] = { "/ca/ca-runner", NULL };
    /* Left to a scheduler, the threads of a call of 5 ms may all run on one core until it ends. */
    const char *bind = cfg->bind ? "OMP_PROC_BIND=close" : NULL;
    const char *places = cfg->bind ? "OMP_PLACES=cores" : NULL;
    const char *env[] = {
        arena_fmt(&tmp, "OMP_NUM_THREADS=%d", cfg->threads),
        arena_fmt(&tmp, "OPENBLAS_NUM_THREADS=%d", cfg->threads),
        arena_fmt(&tmp, "LD_LIBRARY_PATH=%s:/usr/local/nvidia/lib64:/usr/local/nvidia/lib",
                  cfg->library_path),
        "OMP_WAIT_POLICY=PASSIVE",
        "CUDA_CACHE_DISABLE=1",
        "HOME=/tmp",
        "LC_ALL=C",
        bind,
        places,
        NULL
    };
    struct box_spec spec = { .role = BOX_RUNNER,
                             .argv = argv,
                             .env = env,
                             .mounts = mounts,
                             .n_mounts = n,
                             .fork_server = cfg->fork_server,
                             .gpu = cfg->target == TARGET_CUDA,
                             .channel_fd = theirs,
                             .stdin_fd = -1,
                             .out_fd = -1,
                             .err_fd = -1,
                             .mem_bytes = cfg->mem_bytes,
                             .tmp_bytes = RUNNER_TMP,
                             .file_bytes = RUNNER_TMP,
                             .tasks_max = RUNNER_TASKS,
                             .cpus_max = cfg->cpus_max };
    return box_start(&spec, &r->box, err);
}

/* Hello, slabs, plan: all at once, the answers are read when they are needed. */
static enum err_code introduce(struct runner *r, const struct runner_config *cfg, struct err *err)
{
    struct ca_msg m = { .op = CA_OP_HELLO,
                        .a = (uint64_t)cfg->threads,
                        .b = cfg->target == TARGET_CUDA,
                        .c = (uint64_t)cfg->device };
    if (post(r, &m, -1, err) != OK)
        return err->code;
    for (size_t i = 0; i < cfg->n_slabs; i++) {
        m = (struct ca_msg){
            .op = CA_OP_SLAB, .a = i, .b = cfg->slab_bytes[i], .c = cfg->slab_vmm[i]
        };
        if (post(r, &m, cfg->slab_fd[i], err) != OK)
            return err->code;
    }
    m = (struct ca_msg){ .op = CA_OP_PLAN, .a = cfg->plan_bytes };
    r->pending = (int)cfg->n_slabs + 2;
    return post(r, &m, cfg->plan_fd, err);
}

enum err_code runner_start(const struct runner_config *cfg, struct runner **ret, struct err *err)
{
    int pair[2];
    struct runner *r = calloc(1, sizeof *r);
    if (r == NULL)
        return err_sys(err, "allocate a runner");
    r->sock = -1;
    enum err_code code = OK;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        code = err_sys(err, "make a socket pair");
    } else {
        r->sock = pair[0];
        code = box_up(cfg, pair[1], r, err);
        close(pair[1]);
    }
    if (code == OK)
        code = introduce(r, cfg, err);
    if (code != OK) {
        runner_destroy(r);
        return err_within(err, "start a runner");
    }
    *ret = r;
    return OK;
}

void runner_destroy(struct runner *r)
{
    if (r == NULL)
        return;
    own_fd_drop(&r->sock);
    box_destroy(r->box);
    free(r);
}

struct box *runner_box(struct runner *r)
{
    return r->box;
}

bool runner_stop(struct runner *r, struct runner_reply *ret)
{
    if (box_pause(r->box))
        return true;
    *ret = (struct runner_reply){ .end = RUNNER_RESTLESS, .limit_ms = BOX_PAUSE_MS };
    snprintf(ret->how, sizeof ret->how,
             "it cannot be stopped: a thread of it runs on, or waits in the kernel");
    return false;
}

bool runner_stopped(struct runner *r, struct runner_reply *ret)
{
    if (box_paused(r->box))
        return true;
    *ret = (struct runner_reply){ .end = RUNNER_WOKEN };
    snprintf(ret->how, sizeof ret->how, "it was stopped while its inputs were written, and woke");
    return false;
}

void runner_resume(struct runner *r)
{
    box_resume(r->box);
}

static enum err_code ended(struct runner *r, bool hung, struct runner_reply *ret, struct err *err)
{
    struct box_result b;
    r->dead = true;
    if (box_wait(r->box, hung ? 0 : 1000, &b, err) != OK)
        return err->code;
    ret->end = hung ? RUNNER_HUNG : RUNNER_DIED;
    if (hung)
        snprintf(ret->how, sizeof ret->how, "no answer within its time");
    else if (b.end == BOX_OUT_OF_MEMORY)
        snprintf(ret->how, sizeof ret->how, "killed: it wanted more memory than its limit");
    else if (b.end == BOX_SIGNALLED)
        snprintf(ret->how, sizeof ret->how, "killed by signal %d (%s)", b.status,
                 strsignal(b.status));
    else
        snprintf(ret->how, sizeof ret->how, "exited with status %d before it answered", b.status);
    return OK;
}

bool runner_message(const void *bytes, size_t n, uint32_t seq, struct ca_msg *ret)
{
    struct ca_msg m;
    if (n != sizeof m)
        return false;
    memcpy(&m, bytes, sizeof m);
    if (m.magic != CA_MSG_MAGIC || m.seq != seq)
        return false;
    m.text[CA_TEXT_MAX - 1] = '\0';
    for (char *c = m.text; *c != '\0'; c++)
        *c = isprint((unsigned char)*c) ? *c : '?';
    *ret = m;
    return true;
}

/* The next datagram that fits; descriptors are not even asked for. */
static enum err_code hear(struct runner *r, uint32_t seq, int64_t until, struct runner_reply *ret,
                          struct err *err)
{
    while (!r->dead) {
        struct pollfd p = { .fd = r->sock, .events = POLLIN };
        int64_t left = until - clock_ms();
        if (left <= 0)
            return ended(r, true, ret, err);
        int ready = poll(&p, 1, (int)(left < 1000 ? left : 1000));
        if (stop_check(err) != OK)
            return err->code;
        if (ready <= 0)
            continue;
        struct ca_msg m;
        ssize_t n = recv(r->sock, &m, sizeof m, MSG_DONTWAIT);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n <= 0)
            return ended(r, false, ret, err);
        /* A forged or repeated answer is dropped; whoever sends floods runs into its time. */
        if (!runner_message(&m, (size_t)n, seq, &ret->msg))
            continue;
        ret->end = RUNNER_ANSWERED;
        return OK;
    }
    return ended(r, false, ret, err);
}

enum err_code runner_ready(struct runner *r, int64_t limit_ms, struct runner_reply *ret,
                           struct err *err)
{
    int64_t until = clock_ms() + limit_ms;
    *ret = (struct runner_reply){ .end = RUNNER_ANSWERED, .limit_ms = limit_ms };
    for (uint32_t first = r->seq - (uint32_t)r->pending + 1; r->pending > 0;
         r->pending--, first++) {
        if (hear(r, first, until, ret, err) != OK)
            return err->code;
        if (ret->end != RUNNER_ANSWERED || ret->msg.status != CA_DONE)
            return OK;
    }
    return OK;
}

enum err_code runner_say(struct runner *r, struct ca_msg *m, int fd, int64_t limit_ms,
                         struct runner_reply *ret, struct err *err)
{
    *ret = (struct runner_reply){ .limit_ms = limit_ms };
    if (post(r, m, fd, err) != OK)
        return err->code;
    return hear(r, r->seq, clock_ms() + limit_ms, ret, err);
}
