/* A model endpoint that plays scripts: one thread, one loop, any number of connections.
 * tests/endpoint/README.md says how to use it. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "endpoint/play.h"
#include "sys/clock.h"

#define HEAD_MAX ((size_t)64 << 10)
#define BODY_MAX ((size_t)64 << 20)
#define READ_RUN ((size_t)64 << 10)
#define EVENTS_MAX 256
#define BACKLOG 4096
#define SCRIPTS_MAX 64

struct conn {
    int fd;
    char *in; /* heap; what came and was not answered yet */
    size_t n_in, cap_in;
    bool answering, wants_out, closing, reset;
    struct arena arena; /* of one answer */
    struct answer answer;
    size_t piece, sent;
    int64_t due_ms; /* monotonic: when the next piece may go */
};

struct server {
    struct stage stage;
    int epoll, listener;
    struct conn **conns; /* by descriptor */
    size_t cap_conns;
};

/* ---- connections ---- */

static void conn_close(struct server *s, struct conn *c)
{
    struct linger now = { .l_onoff = 1, .l_linger = 0 };
    if (c->reset)
        (void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(c->fd);
    s->conns[c->fd] = NULL;
    s->stage.n_connections--;
    arena_fini(&c->arena);
    free(c->in);
    free(c);
}

static void watch(struct server *s, struct conn *c, bool out)
{
    if (c->wants_out == out)
        return;
    struct epoll_event e = { .events = EPOLLIN | EPOLLRDHUP | (out ? EPOLLOUT : 0u),
                             .data.fd = c->fd };
    (void)epoll_ctl(s->epoll, EPOLL_CTL_MOD, c->fd, &e);
    c->wants_out = out;
}

static void conn_open(struct server *s, int fd)
{
    struct conn *c = calloc(1, sizeof *c);
    int on = 1;
    struct epoll_event e = { .events = EPOLLIN | EPOLLRDHUP, .data.fd = fd };
    if ((size_t)fd >= s->cap_conns) {
        size_t cap = (size_t)fd * 2 + 64;
        struct conn **more = realloc(s->conns, cap * sizeof(struct conn *));
        if (more != NULL) {
            memset(more + s->cap_conns, 0, (cap - s->cap_conns) * sizeof(struct conn *));
            s->conns = more;
            s->cap_conns = cap;
        }
    }
    if (c == NULL || (size_t)fd >= s->cap_conns ||
        epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &e) != 0) {
        close(fd);
        free(c);
        return;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    c->fd = fd;
    s->conns[fd] = c;
    s->stage.n_accepted++;
    if (++s->stage.n_connections > s->stage.connections_most)
        s->stage.connections_most = s->stage.n_connections;
}

/* ---- requests ---- */

static struct str header(struct str head, const char *name)
{
    struct str line, key;
    while (str_cut(&head, '\n', &line)) {
        if (!str_cut(&line, ':', &key) || key.len != strlen(name))
            continue;
        if (strncasecmp(key.ptr, name, key.len) == 0)
            return str_trim(line);
    }
    return (struct str){ 0 };
}

static void answer_start(struct conn *c)
{
    c->answering = true;
    c->piece = c->sent = 0;
    c->due_ms = clock_ms() + (c->answer.n_pieces > 0 ? c->answer.pieces[0].wait_ms : 0);
}

/* A whole request at the front of what came: answered, and taken off. */
static void request_take(struct server *s, struct conn *c)
{
    struct str all = { c->in, c->n_in }, line, version;
    const char *end = all.len > 0 ? memmem(all.ptr, all.len, "\r\n\r\n", 4) : NULL;
    struct http_request q = { 0 };
    int64_t length = 0;
    struct err err;
    if (c->answering || c->closing)
        return;
    if (end == NULL) {
        c->closing = c->n_in > HEAD_MAX;
        return;
    }
    struct str head = { all.ptr, (size_t)(end - all.ptr) + 2 }, rest = head;
    struct str text = header(head, "content-length");
    size_t n_head = head.len + 2;
    str_cut(&rest, '\n', &line);
    line = str_trim(line);
    str_cut(&line, ' ', &q.method);
    version = line;
    str_cut(&version, ' ', &q.path);
    c->answer = (struct answer){ .arena = &c->arena };
    if (header(head, "transfer-encoding").len > 0 ||
        (text.len > 0 && str_int(text, 0, BODY_MAX, &length, &err) != OK)) {
        answer_text(&c->answer, 411, "text/plain", S("a request wants a Content-Length\n"));
        c->answer.farewell = FAREWELL_CLOSE;
        answer_start(c);
        return;
    }
    if (all.len < n_head + (size_t)length)
        return;
    q.authorization = header(head, "authorization");
    q.api_key = header(head, "x-api-key");
    q.body = (struct str){ all.ptr + n_head, (size_t)length };
    struct str connection = header(head, "connection");
    bool last = connection.len == 5 && strncasecmp(connection.ptr, "close", 5) == 0;
    play(&s->stage, &q, &c->answer);
    if (last && c->answer.farewell == FAREWELL_KEEP)
        c->answer.farewell = FAREWELL_CLOSE;
    size_t taken = n_head + (size_t)length;
    memmove(c->in, c->in + taken, c->n_in - taken);
    c->n_in -= taken;
    if (c->n_in == 0) { /* a quiet connection holds no memory */
        free(c->in);
        c->in = NULL;
        c->cap_in = 0;
    }
    answer_start(c);
}

/* False when the other side is gone. */
static bool conn_read(struct conn *c)
{
    for (;;) {
        if (c->cap_in - c->n_in < READ_RUN) {
            size_t cap = c->cap_in * 2 + READ_RUN;
            char *more = cap <= BODY_MAX * 2 + HEAD_MAX * 4 ? realloc(c->in, cap) : NULL;
            if (more == NULL)
                return false;
            c->in = more;
            c->cap_in = cap;
        }
        ssize_t n = read(c->fd, c->in + c->n_in, c->cap_in - c->n_in);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        if (n == 0)
            return false;
        c->n_in += (size_t)n;
    }
}

/* ---- answers ---- */

/* What is due goes out. False when the connection is over. */
static bool conn_write(struct server *s, struct conn *c, int64_t now)
{
    struct answer *a = &c->answer;
    while (c->answering && c->piece < a->n_pieces) {
        if (now < c->due_ms) {
            watch(s, c, false);
            return true;
        }
        size_t last = c->piece; /* pieces without a wait between them are one write */
        while (a->bytes.ptr != NULL && last + 1 < a->n_pieces && a->pieces[last + 1].wait_ms == 0)
            last++;
        ssize_t n =
            send(c->fd, a->bytes.ptr + c->sent, a->pieces[last].end - c->sent, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN)
            return false;
        c->sent += n > 0 ? (size_t)n : 0;
        if (c->sent < a->pieces[last].end) {
            watch(s, c, true);
            return true;
        }
        c->piece = last + 1;
        if (c->piece < a->n_pieces)
            c->due_ms = now + a->pieces[c->piece].wait_ms;
    }
    watch(s, c, false);
    if (!c->answering || a->farewell == FAREWELL_HANG)
        return true;
    enum farewell farewell = a->farewell;
    c->answering = false;
    c->answer = (struct answer){ 0 };
    arena_fini(&c->arena);
    c->reset = farewell == FAREWELL_RESET;
    return farewell == FAREWELL_KEEP;
}

static void conn_move(struct server *s, int fd, uint32_t events)
{
    struct conn *c = (size_t)fd < s->cap_conns ? s->conns[fd] : NULL;
    if (c == NULL)
        return;
    bool alive = (events & (EPOLLHUP | EPOLLERR)) == 0;
    if (alive && (events & (EPOLLIN | EPOLLRDHUP)) != 0)
        alive = conn_read(c);
    /* Requests that wait behind one that is answered come one after the other. */
    for (bool more = alive; more && alive;) {
        request_take(s, c);
        bool was = c->answering;
        alive = conn_write(s, c, clock_ms()) && !c->closing;
        more = was && !c->answering && c->n_in > 0;
    }
    if (!alive)
        conn_close(s, c);
}

static void accept_all(struct server *s)
{
    for (;;) {
        int fd = accept4(s->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0)
            return;
        conn_open(s, fd);
    }
}

/* ---- the loop ---- */

static volatile sig_atomic_t stopped;

static void on_stop(int signal_number)
{
    (void)signal_number;
    stopped = 1;
}

/* Moves what is due; how long until the next is. */
static int due(struct server *s)
{
    int64_t now = clock_ms(), next = -1;
    for (size_t i = 0; i < s->cap_conns; i++) {
        struct conn *c = s->conns[i];
        bool waits = c != NULL && c->answering && c->piece < c->answer.n_pieces && !c->wants_out;
        if (!waits)
            continue;
        if (c->due_ms <= now) {
            conn_move(s, (int)i, 0);
            c = s->conns[i];
            waits = c != NULL && c->answering && c->piece < c->answer.n_pieces && !c->wants_out;
        }
        if (waits && (next < 0 || c->due_ms < next))
            next = c->due_ms;
    }
    return next < 0 ? -1 : next > now ? (int)(next - now) : 0;
}

static enum err_code serve(struct server *s, struct err *err)
{
    struct epoll_event events[EVENTS_MAX];
    sigset_t all, none;
    sigemptyset(&none);
    sigemptyset(&all);
    sigaddset(&all, SIGTERM);
    sigaddset(&all, SIGINT);
    (void)sigprocmask(SIG_BLOCK, &all, NULL); /* they come during the wait, and never before it */
    while (!stopped) {
        int n = epoll_pwait(s->epoll, events, EVENTS_MAX, due(s), &none);
        if (n < 0 && errno != EINTR)
            return err_sys(err, "epoll_pwait");
        for (int i = 0; i < n; i++) {
            if (events[i].data.fd == s->listener)
                accept_all(s);
            else
                conn_move(s, events[i].data.fd, events[i].events);
        }
    }
    return OK;
}

static enum err_code listen_on(struct server *s, int64_t port, int64_t *ret_port, struct err *err)
{
    struct sockaddr_in at = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof at;
    int on = 1;
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (s->listener < 0 || setsockopt(s->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(s->listener, (struct sockaddr *)&at, sizeof at) != 0 ||
        listen(s->listener, BACKLOG) != 0 ||
        getsockname(s->listener, (struct sockaddr *)&at, &len) != 0)
        return err_sys(err, "listen on port %lld", (long long)port);
    *ret_port = ntohs(at.sin_port);
    struct epoll_event e = { .events = EPOLLIN, .data.fd = s->listener };
    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (s->epoll < 0 || epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->listener, &e) != 0)
        return err_sys(err, "epoll");
    return OK;
}

static void files_raise(void)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) == 0) {
        r.rlim_cur = r.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &r);
    }
}

/* ---- options ---- */

static enum err_code disguise_find(struct str name, const struct disguise **ret, struct err *err)
{
    for (int i = 0; disguises[i] != NULL; i++)
        if (str_eq(str_from(disguises[i]->name), name)) {
            *ret = disguises[i];
            return OK;
        }
    return err_raise(err, ERR_USAGE, "--as: openai, vllm, llamacpp, ollama or anthropic");
}

static enum err_code run(struct arena *a, struct server *s, int argc, char **argv, struct err *err)
{
    static struct script scripts[SCRIPTS_MAX];
    struct str as = S("openai"), key_env = { 0 };
    int64_t port = 0, seed = 1;
    const struct field fields[] = {
        FIELD_TEXT("as", &as, "openai, vllm, llamacpp, ollama, anthropic"),
        FIELD_INT("port", &port, 0, 65535, "0: any"),
        FIELD_TEXT("key_env", &key_env, "variable with the key that is demanded"),
        FIELD_INT("seed", &seed, 0, 1e9, "of the shares of troubles"),
    };
    struct args args = { argc - 1, argv + 1 };
    if (args_options(&args, fields, COUNT(fields), err) != OK ||
        disguise_find(as, &s->stage.disguise, err) != OK)
        return err->code;
    if (args.n < 1 || args.n > SCRIPTS_MAX)
        return err_raise(err, ERR_USAGE, "wants 1 to %d scripts", SCRIPTS_MAX);
    for (int i = 0; i < args.n; i++, s->stage.n_scripts++)
        if (script_read(a, args.v[i], &scripts[i], err) != OK)
            return err->code;
    s->stage.scripts = scripts;
    s->stage.random = (uint64_t)seed;
    s->stage.key = key_env.len > 0 ? getenv(str_z(a, key_env)) : NULL;
    if (key_env.len > 0 && s->stage.key == NULL)
        return err_raise(err, ERR_CONFIG, "the variable %.*s is not set", STR_FMT(key_env));
    if (listen_on(s, port, &port, err) != OK)
        return err->code;
    printf("%lld\n", (long long)port);
    fflush(stdout);
    return serve(s, err);
}

int main(int argc, char **argv)
{
    own_arena a = { 0 };
    struct server s = { .epoll = -1, .listener = -1 };
    struct err err = { 0 };
    struct sigaction stop = { .sa_handler = on_stop };
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGINT, &stop, NULL);
    files_raise();
    enum err_code code = run(&a, &s, argc, argv, &err);
    for (size_t i = 0; i < s.cap_conns; i++)
        if (s.conns[i] != NULL)
            conn_close(&s, s.conns[i]);
    for (size_t i = 0; i < s.stage.n_scripts; i++)
        script_fini(&s.stage.scripts[i]);
    free(s.conns);
    free(s.stage.last);
    if (s.listener >= 0)
        close(s.listener);
    if (s.epoll >= 0)
        close(s.epoll);
    if (code != OK)
        fprintf(stderr,
                "scripted_endpoint: %s\nusage: scripted_endpoint [--as SERVER] [--port N] "
                "[--key-env NAME] [--seed N] SCRIPT.json...\n",
                err.text);
    return err_exit_status(code);
}
