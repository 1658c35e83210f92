/* ca-runner, without its box, fed with messages that make no sense: each is refused with a
 * reason, and the runner lives on and does the next right thing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ca_runner.h"
#include "core/own.h"
#include "sys/file.h"
#include "sys/proc.h"

#define SLAB 4096
#define LIMIT_MS 10000

static struct arena life;
static const char *room, *program;

/* Doubles its input; says 5 when the first element is negative. */
static const char source[] =
    "#include \"cuda_agent.h\"\n"
    "size_t ca_scratch(const struct ca_call *c) { (void)c; return 100; }\n"
    "size_t ca_keep(const struct ca_call *c) { return c->param.v[0].data ? (size_t)-1 : 16; }\n"
    "int ca_setup(const struct ca_call *c, void **state)\n"
    "{ (void)state; ((float *)c->keep)[0] = ((float *)c->param.v[0].data)[0];\n"
    "  return c->in.v[0].data || c->out.v[0].data || c->keep_bytes != 16; }\n"
    "int ca_forward(const struct ca_call *c)\n"
    "{ const float *x = c->in.v[0].data; float *y = c->out.v[0].data;\n"
    "  if (x[0] < 0 || c->scratch_bytes < 100 || c->version != CA_VERSION) return 5;\n"
    "  for (int i = 0; i < 4; i++) y[i] = x[i] * ((float *)c->keep)[0];\n"
    "  return 0; }\n";

/* ---- one runner and its socket ---- */

struct talk {
    pid_t pid;
    int fd;
    uint32_t seq;
};

static struct talk begin(void)
{
    struct talk t = { 0 };
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    t.pid = fork();
    if (t.pid == 0) {
        if (pair[1] == CA_RUNNER_FD ? fcntl(pair[1], F_SETFD, 0) != 0
                                    : dup2(pair[1], CA_RUNNER_FD) < 0)
            _exit(98);
        execl(program, program, (char *)NULL);
        _exit(99);
    }
    assert_true(t.pid > 0);
    close(pair[1]);
    t.fd = pair[0];
    return t;
}

/* Bytes and descriptors as they are: also those that make no sense. */
static void send_raw(const struct talk *t, const void *bytes, size_t n, const int *fd, size_t n_fd)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(4 * sizeof(int))];
    } control = { 0 };
    struct iovec io = { (void *)(uintptr_t)bytes, n };
    struct msghdr h = { .msg_iov = &io, .msg_iovlen = 1 };
    if (n_fd > 0) {
        control.head = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS };
        control.head.cmsg_len = CMSG_LEN(n_fd * sizeof *fd);
        memcpy(CMSG_DATA(&control.head), fd, n_fd * sizeof *fd);
        h.msg_control = &control;
        h.msg_controllen = CMSG_SPACE(n_fd * sizeof *fd);
    }
    assert_int_equal(sendmsg(t->fd, &h, MSG_NOSIGNAL), n);
}

static struct ca_msg hear(const struct talk *t)
{
    struct ca_msg m = { 0 };
    struct pollfd p = { .fd = t->fd, .events = POLLIN };
    assert_int_equal(poll(&p, 1, LIMIT_MS), 1);
    if (recv(t->fd, &m, sizeof m, 0) != (ssize_t)sizeof m)
        fail_msg("the runner died");
    assert_int_equal(m.magic, CA_MSG_MAGIC);
    assert_non_null(memchr(m.text, 0, sizeof m.text));
    return m;
}

static struct ca_msg ask(struct talk *t, struct ca_msg m, int fd)
{
    m.magic = CA_MSG_MAGIC;
    m.seq = ++t->seq;
    send_raw(t, &m, sizeof m, &fd, fd >= 0);
    struct ca_msg r = hear(t);
    assert_int_equal(r.seq, m.seq);
    assert_int_equal(r.op, m.op);
    return r;
}

static void end(struct talk *t)
{
    int status = 0;
    struct ca_msg bye = { .op = CA_OP_BYE };
    assert_int_equal(ask(t, bye, -1).status, CA_DONE);
    assert_int_equal(waitpid(t->pid, &status, 0), t->pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close(t->fd);
}

/* ---- memory and the plan ---- */

static int memory(size_t bytes)
{
    int fd = memfd_create("slab", MFD_CLOEXEC);
    assert_true(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0);
    return fd;
}

struct plan { /* one input, one parameter, one output, two sets */
    struct ca_plan head;
    struct ca_plan_value value[3];
    struct ca_plan_place place[5];
};

static struct plan right_plan(void)
{
    struct ca_plan_value v = { .name = "x", .kind = CA_TENSOR, .rank = 1, .alias = -1 };
    v.shape[0] = 4;
    v.stride[0] = 1;
    struct plan p = { .head = { CA_MSG_MAGIC, 1, 1, 1, 2, 0 },
                      .value = { v, v, v },
                      .place = { { 0, 0 }, { 0, 256 }, { 0, 512 }, { 0, 768 }, { 0, 1024 } } };
    return p;
}

static struct ca_msg say_plan(struct talk *t, const struct plan *p, uint64_t bytes)
{
    own_fd fd = memory(sizeof *p);
    assert_int_equal(pwrite(fd, p, sizeof *p, 0), sizeof *p);
    struct ca_msg m = { .op = CA_OP_PLAN, .a = bytes };
    return ask(t, m, fd);
}

static struct ca_msg say_slab(struct talk *t, uint64_t index, uint64_t bytes, int fd)
{
    struct ca_msg m = { .op = CA_OP_SLAB, .a = index, .b = bytes };
    return ask(t, m, fd);
}

static struct ca_msg say(struct talk *t, uint32_t op, uint64_t a)
{
    struct ca_msg m = { .op = op, .a = a };
    return ask(t, m, -1);
}

static void refused(struct ca_msg m)
{
    assert_int_equal(m.status, CA_REFUSED);
    assert_true(m.text[0] != '\0');
}

static void done(struct ca_msg m)
{
    if (m.status != CA_DONE)
        fail_msg("status %d: %s", m.status, m.text);
}

/* ---- tests ---- */

static void before_hello(void **state)
{
    static const uint32_t ops[] = { 0,           CA_OP_SLAB, CA_OP_PLAN, CA_OP_CODE, CA_OP_SIZES,
                                    CA_OP_SETUP, CA_OP_GO,   9,          UINT32_MAX };
    struct talk t = begin();
    own_fd fd = memory(SLAB);
    (void)state;
    for (size_t i = 0; i < COUNT(ops); i++) {
        struct ca_msg m = { .op = ops[i], .a = 1, .b = 1 };
        refused(ask(&t, m, -1));
        refused(ask(&t, m, fd));
    }
    refused(say(&t, CA_OP_HELLO, 0));
    refused(say(&t, CA_OP_HELLO, 5000));
    refused(say(&t, CA_OP_HELLO, UINT64_MAX));
    done(say(&t, CA_OP_HELLO, 2));
    refused(say(&t, CA_OP_HELLO, 2));
    end(&t);
}

static void malformed(void **state)
{
    struct talk t = begin();
    struct ca_msg m = { .magic = CA_MSG_MAGIC, .op = CA_OP_HELLO, .a = 1 };
    char longer[2 * sizeof m];
    own_fd fd = memory(SLAB);
    const int two[] = { fd, fd };
    (void)state;
    send_raw(&t, &m, 1, NULL, 0);
    refused(hear(&t));
    send_raw(&t, &m, sizeof m - 1, NULL, 0);
    refused(hear(&t));
    m.magic = 7;
    send_raw(&t, &m, sizeof m, NULL, 0);
    refused(hear(&t));
    m.magic = CA_MSG_MAGIC;
    memset(longer, 0xff, sizeof longer);
    memcpy(longer, &m, sizeof m);
    memset(longer, 0, 4);
    send_raw(&t, longer, sizeof longer, NULL, 0);
    refused(hear(&t));
    done(ask(&t, m, fd)); /* a descriptor that nobody needs */
    m.op = CA_OP_SLAB;
    m.b = SLAB;
    send_raw(&t, &m, sizeof m, two, 2);
    refused(hear(&t));
    end(&t);
}

static void slabs(void **state)
{
    struct talk t = begin();
    own_fd fd = memory(SLAB), null = open("/dev/null", O_RDWR | O_CLOEXEC);
    (void)state;
    done(say(&t, CA_OP_HELLO, 1));
    refused(say_slab(&t, 0, SLAB, -1));
    refused(say_slab(&t, CA_SLABS_MAX, SLAB, fd));
    refused(say_slab(&t, UINT64_MAX, SLAB, fd));
    refused(say_slab(&t, 0, 0, fd));
    refused(say_slab(&t, 0, SLAB + 1, fd));
    refused(say_slab(&t, 0, UINT64_MAX, fd));
    refused(say_slab(&t, 0, 1, null));
    struct ca_msg vmm = { .op = CA_OP_SLAB, .b = SLAB, .c = 1 };
    assert_int_equal(ask(&t, vmm, fd).status, CA_DEVICE_ERROR); /* of cuda, on cpu */
    done(say_slab(&t, 0, SLAB, fd));
    refused(say_slab(&t, 0, SLAB, fd));
    done(say_slab(&t, CA_SLABS_MAX - 1, SLAB, fd));
    end(&t);
}

#define SPOIL(name, line)            \
    static void name(struct plan *p) \
    {                                \
        line;                        \
    }
SPOIL(spoil_magic, p->head.magic++)
SPOIL(spoil_in, p->head.n_in = -1)
SPOIL(spoil_in_more, p->head.n_in = 2)
SPOIL(spoil_in_huge, p->head.n_in = INT32_MAX)
SPOIL(spoil_param, p->head.n_param = INT32_MIN)
SPOIL(spoil_out, p->head.n_out = 0)
SPOIL(spoil_sets_none, p->head.n_sets = 0)
SPOIL(spoil_sets_many, p->head.n_sets = CA_SETS_MAX + 1)
SPOIL(spoil_rank, p->value[1].rank = CA_RANK_MAX + 1)
SPOIL(spoil_rank_below, p->value[2].rank = -1)
SPOIL(spoil_name, memset(p->value[0].name, 'x', sizeof p->value[0].name))
SPOIL(spoil_text, memset(p->value[0].text, 'x', sizeof p->value[0].text))
SPOIL(spoil_slab, p->place[0].slab = 1)
SPOIL(spoil_slab_below, p->place[0].slab = -2)
SPOIL(spoil_slab_huge, p->place[1].slab = INT64_MAX)
SPOIL(spoil_offset, p->place[3].offset = SLAB + 256)
SPOIL(spoil_offset_huge, p->place[4].offset = UINT64_MAX - 255)
SPOIL(spoil_align, p->place[4].offset = 4)

static void plans(void **state)
{
    static void (*const spoil[])(struct plan *) = {
        spoil_magic,  spoil_in,          spoil_in_more,   spoil_in_huge,    spoil_param,
        spoil_out,    spoil_sets_none,   spoil_sets_many, spoil_rank,       spoil_rank_below,
        spoil_name,   spoil_text,        spoil_slab,      spoil_slab_below, spoil_slab_huge,
        spoil_offset, spoil_offset_huge, spoil_align,
    };
    (void)state;
    for (size_t i = 0; i < COUNT(spoil); i++) {
        struct talk t = begin();
        own_fd fd = memory(SLAB);
        struct plan p = right_plan();
        done(say(&t, CA_OP_HELLO, 1));
        done(say_slab(&t, 0, SLAB, fd));
        spoil[i](&p);
        print_message("plan %zu\n", i);
        refused(say_plan(&t, &p, sizeof p));
        refused(say(&t, CA_OP_GO, 1));
        refused(say(&t, CA_OP_CODE, 0));
        end(&t);
    }
}

static void plan_sizes(void **state)
{
    static const uint64_t sizes[] = { 0,
                                      1,
                                      sizeof(struct ca_plan) - 1,
                                      sizeof(struct ca_plan),
                                      sizeof(struct plan) - 1,
                                      sizeof(struct plan) + 1,
                                      UINT64_MAX };
    struct talk t = begin();
    own_fd fd = memory(SLAB);
    struct plan p = right_plan();
    (void)state;
    done(say(&t, CA_OP_HELLO, 1));
    done(say_slab(&t, 0, SLAB, fd));
    refused(say(&t, CA_OP_PLAN, sizeof p)); /* no descriptor */
    for (size_t i = 0; i < COUNT(sizes); i++)
        refused(say_plan(&t, &p, sizes[i]));
    done(say_plan(&t, &p, sizeof p)); /* all that did no harm */
    refused(say_plan(&t, &p, sizeof p));
    end(&t);
}

/* From hello to right numbers, with nonsense on the way. */
static void a_candidate(void **state)
{
    const float x[8] = { 1, 2, 3, 4, -1, 0, 0, 0 }, weight = 3;
    struct talk t = begin();
    own_fd fd = memory(SLAB);
    own_fd so = open(path_join(&life, room, "good.so"), O_RDONLY | O_CLOEXEC);
    struct plan p = right_plan();
    struct ca_msg code = { .op = CA_OP_CODE }, go = { .op = CA_OP_GO, .a = 2, .set = { 0, 2 } };
    float y[4] = { 0 };
    (void)state;
    assert_true(pwrite(fd, x, 16, 0) == 16 && pwrite(fd, x + 4, 16, 512) == 16);
    assert_int_equal(pwrite(fd, &weight, sizeof weight, 1024), sizeof weight);
    done(say(&t, CA_OP_HELLO, 1));
    done(say_slab(&t, 0, SLAB, fd));
    done(say_plan(&t, &p, sizeof p));
    refused(say(&t, CA_OP_SIZES, 0));
    refused(say(&t, CA_OP_SETUP, 0));
    refused(say(&t, CA_OP_GO, 1));
    refused(ask(&t, code, -1));
    done(ask(&t, code, so));
    refused(ask(&t, code, so));
    struct ca_msg sizes = say(&t, CA_OP_SIZES, 0);
    done(sizes);
    assert_true(sizes.a == 100 && sizes.b == 16);
    refused(say(&t, CA_OP_SIZES, 0));
    done(say(&t, CA_OP_SETUP, 0));
    refused(say(&t, CA_OP_GO, 0));
    refused(say(&t, CA_OP_GO, CA_SETS_MAX + 1));
    refused(say(&t, CA_OP_GO, UINT64_MAX));
    refused(ask(&t, go, -1));                              /* set 2 of 2 */
    assert_true(pread(fd, y, 16, 256) == 16 && y[0] == 0); /* and nothing of it was done */
    done(say(&t, CA_OP_GO, 1));
    assert_true(pread(fd, y, 16, 256) == 16 && y[0] == 3 && y[3] == 12);
    go.set[1] = 1;
    struct ca_msg failed = ask(&t, go, -1);
    assert_int_equal(failed.status, CA_CALL_FAILED);
    assert_int_equal(failed.a, 5);
    done(say(&t, CA_OP_SETUP, 0));
    done(say(&t, CA_OP_GO, 1));
    end(&t);
}

static void no_candidate(void **state)
{
    static const char *const files[] = { "empty.so", "text.so", "none.so" };
    (void)state;
    for (size_t i = 0; i < COUNT(files); i++) {
        struct talk t = begin();
        own_fd fd = memory(SLAB);
        own_fd so = open(path_join(&life, room, files[i]), O_RDONLY | O_CLOEXEC);
        struct plan p = right_plan();
        struct ca_msg code = { .op = CA_OP_CODE };
        done(say(&t, CA_OP_HELLO, 1));
        done(say_slab(&t, 0, SLAB, fd));
        done(say_plan(&t, &p, sizeof p));
        struct ca_msg m = ask(&t, code, so);
        print_message("%s: %s\n", files[i], m.text);
        assert_int_equal(m.status, CA_LOAD_FAILED);
        refused(say(&t, CA_OP_SIZES, 0));
        refused(say(&t, CA_OP_GO, 1));
        end(&t);
    }
}

/* When the examiner goes away, so does the runner. */
static void hang_up(void **state)
{
    struct talk t = begin();
    int status = 0;
    (void)state;
    done(say(&t, CA_OP_HELLO, 1));
    close(t.fd);
    assert_int_equal(waitpid(t.pid, &status, 0), t.pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static int compile(const char *name, struct str text, struct err *err)
{
    const char *c = arena_fmt(&life, "%s/%s.c", room, name);
    const char *so = arena_fmt(&life, "%s/%s.so", room, name);
    const char *argv[] = { "gcc", "-shared", "-fPIC", "-I" CA_SOURCE_DIR "/include",
                           c,     "-o",      so,      NULL };
    struct proc_spec spec = { .argv = argv, .wall_ms = 30000, .out_max = 4096 };
    struct proc_result p = { 0 };
    if (file_write(c, text, 0644, err) != OK || proc_run(&life, &spec, &p, err) != OK)
        return -1;
    print_message("%.*s", STR_FMT(p.err_out));
    return p.status;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(before_hello), cmocka_unit_test(malformed),  cmocka_unit_test(slabs),
        cmocka_unit_test(plans),        cmocka_unit_test(plan_sizes), cmocka_unit_test(a_candidate),
        cmocka_unit_test(no_candidate), cmocka_unit_test(hang_up),
    };
    struct err err = { 0 };
    const char *dir = NULL;
    if (program_dir(&life, &dir, &err) != OK ||
        dir_temp(&life, "/tmp", "ca-runner", &room, &err) != OK)
        return 1;
    program = path_join(&life, dir, "ca-runner");
    int failed = compile("good", str_from(source), &err);
    failed |= compile("none", S("int nothing;\n"), &err);
    failed |= file_write(path_join(&life, room, "empty.so"), S(""), 0644, &err) != OK;
    failed |= file_write(path_join(&life, room, "text.so"), S("no ELF at all"), 0644, &err) != OK;
    if (failed)
        print_message("cannot make the shared objects: %s\n", err.text);
    else
        failed = cmocka_run_group_tests(tests, NULL, NULL);
    failed += dir_remove(room, &err) != OK;
    arena_fini(&life);
    return failed;
}
