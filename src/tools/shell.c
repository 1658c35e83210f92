#include "tools/shell.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/own.h"
#include "sys/clock.h"
#include "sys/file.h"

#define GIB ((int64_t)1 << 30)
#define MIB ((int64_t)1 << 20)
#define CWD_FILE "/tmp/.cwd"
#define PIPE_BYTES (1 << 20)  /* asked for: who is not read for a while goes on longer */
#define DRAIN_BYTES (4 << 20) /* at a time: who floods must not keep us from the clock */
#define LABEL_BYTES 120

/* $1 command, $2 folder, $3 where to leave the folder at the end. The folder may be gone. */
static const char script[] =
    "__command=$1 __cwd=$3; "
    "cd -- \"$2\" 2>/dev/null || echo \"[$2 is gone: this runs in $PWD]\" >&2; "
    "trap 'pwd -P >\"$__cwd\" 2>/dev/null' EXIT; "
    "set --; "
    "eval \"$__command\"";

static const char *const environment[] = {
    "PATH=/usr/local/cuda/bin:/usr/local/bin:/usr/bin:/bin",
    "HOME=/tmp",
    "TMPDIR=/tmp",
    "LANG=C.UTF-8",
    "TERM=dumb",
    "PAGER=cat",
    "GIT_PAGER=cat",
    "NO_COLOR=1",
    "TQDM_DISABLE=1",
    "PIP_PROGRESS_BAR=off",
    "DEBIAN_FRONTEND=noninteractive",
};

static const char *const *env_of(const struct tools *t, struct arena *a)
{
    size_t own = COUNT(environment), more = 0;
    while (t->spec.env != NULL && t->spec.env[more] != NULL)
        more++;
    const char **env = arena_new(a, const char *, own + more + 1);
    memcpy(env, environment, sizeof environment);
    for (size_t i = 0; i < more; i++)
        env[own + i] = t->spec.env[i];
    return env;
}

struct mounts {
    struct box_mount *v;
    size_t n;
};

static bool mounted(const struct mounts *m, const char *at)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->v[i].at != NULL && strcmp(m->v[i].at, at) == 0)
            return true;
    return false;
}

/* The copy over the file, and the folders on the way onto themselves: what is a mount cannot be
 * renamed from inside, so that the way stays what it was. */
static void freeze(const struct tools *t, struct arena *a, size_t i, struct mounts *m)
{
    const struct folder *f = &t->folder[FOLDER_WORKSPACE];
    const char *rel = t->frozen[i].rel;
    for (const char *c = strchr(rel, '/'); c != NULL; c = strchr(c + 1, '/')) {
        const char *upto = arena_fmt(a, "%.*s", (int)(c - rel), rel);
        const char *at = path_join(a, f->inside, upto);
        if (!mounted(m, at))
            m->v[m->n++] = (struct box_mount){ path_join(a, f->outside, upto), at, true, false };
    }
    m->v[m->n++] =
        (struct box_mount){ frozen_copy(t, a, i), path_join(a, f->inside, rel), false, false };
}

static struct mounts mounts_of(const struct tools *t, struct arena *a)
{
    const struct folder *work = &t->folder[FOLDER_WORKSPACE], *spill = &t->folder[FOLDER_SPILL];
    struct mounts m = { arena_new(a, struct box_mount, 3 + t->spec.n_mounts + t->n_frozen * 64),
                        0 };
    m.v[m.n++] = (struct box_mount){ work->outside, work->inside, true, false };
    m.v[m.n++] = (struct box_mount){ path_join(a, t->scratch, "tmp"), "/tmp", true, false };
    m.v[m.n++] = (struct box_mount){ spill->outside, spill->inside, false, false };
    for (size_t i = 0; i < t->spec.n_mounts; i++)
        m.v[m.n++] = t->spec.mounts[i];
    for (size_t i = 0; t->rung == 1 && i < t->n_frozen; i++)
        freeze(t, a, i, &m);
    return m;
}

static enum err_code box_of(struct tools *t, const char *command, int out, struct box **ret,
                            struct err *err)
{
    own_arena tmp = { 0 };
    const char *argv[] = { "/bin/bash", "-c", script, "bash", command, t->cwd, CWD_FILE, NULL };
    struct mounts m = mounts_of(t, &tmp);
    struct box_spec spec = { .role = BOX_WORKSPACE,
                             .argv = argv,
                             .env = env_of(t, &tmp),
                             .dir = t->folder[FOLDER_WORKSPACE].inside,
                             .mounts = m.v,
                             .n_mounts = m.n,
                             .channel_fd = -1,
                             .stdin_fd = -1,
                             .out_fd = out,
                             .err_fd = out,
                             .mem_bytes = t->spec.mem_bytes > 0 ? t->spec.mem_bytes : 4 * GIB,
                             .tmp_bytes = 64 * MIB,
                             .file_bytes = t->spec.file_bytes > 0 ? t->spec.file_bytes : GIB,
                             .tasks_max = t->spec.tasks_max > 0 ? t->spec.tasks_max : 256,
                             .cpus_max = t->spec.cpus_max };
    return box_start(&spec, ret, err);
}

enum err_code shell_start(struct tools *t, struct arena *a, struct str command, bool background,
                          struct shell **ret, struct err *err)
{
    own_arena tmp = { 0 };
    int fd[2];
    if (tools_frozen_check(t, err) != OK && err->code != ERR_STATE)
        return err->code;
    *err = (struct err){ 0 }; /* put back: nothing in the way */
    if (pipe2(fd, O_CLOEXEC) != 0)
        return err_sys(err, "make a pipe");
    own_fd in = fd[0], out = fd[1];
    fcntl(in, F_SETFL, O_NONBLOCK);
    if (background)
        fcntl(in, F_SETPIPE_SZ, PIPE_BYTES); /* refused where a user has many of them */
    struct shell *s = calloc(1, sizeof *s);
    if (s == NULL)
        return err_sys(err, "start a command");
    struct str label =
        command.len <= LABEL_BYTES ? command : (struct str){ command.ptr, LABEL_BYTES };
    s->out = -1;
    s->background = background;
    s->started_ms = clock_ms();
    s->command = strdup(str_z(&tmp, label));
    gather_init(&s->gather, t, a);
    if (s->command == NULL || box_of(t, str_z(&tmp, command), out, &s->box, err) != OK) {
        shell_free(s);
        return err->code != OK ? err->code : err_sys(err, "start a command");
    }
    s->out = own_fd_take(&in);
    s->serial = background ? ++t->shells_started : 0;
    *ret = s;
    return OK;
}

static void keep(struct shell *s, struct str bytes)
{
    if (s->background)
        ring_add(&s->ring, bytes);
    else
        gather_add(&s->gather, bytes);
}

/* What is in the pipe. */
static void drain(struct shell *s)
{
    char chunk[65536];
    for (size_t sum = 0; s->out >= 0 && sum < DRAIN_BYTES;) {
        ssize_t n = read(s->out, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            own_fd_drop(&s->out);
            s->out = -1;
            return;
        }
        keep(s, (struct str){ chunk, (size_t)n });
        sum += (size_t)n;
    }
}

/* wall_ms 0 kills. */
static void finish(struct shell *s, int64_t wall_ms)
{
    struct err err = { 0 };
    if (box_wait(s->box, wall_ms, &s->result, &err) != OK)
        s->failure = strdup(err.text);
    box_destroy(s->box); /* and everything that it started */
    s->box = NULL;
    drain(s);
    own_fd_drop(&s->out);
    s->out = -1;
}

void shell_pump(struct shell *s)
{
    if (s->box == NULL)
        return;
    struct pollfd p = { .fd = box_end_fd(s->box), .events = POLLIN };
    bool ended = poll(&p, 1, 0) > 0;
    drain(s);
    if (ended)
        finish(s, 1000);
    else if (clock_ms() >= s->until_ms)
        finish(s, 0);
}

void shell_kill(struct shell *s)
{
    if (s->box != NULL)
        finish(s, 0);
}

void shell_free(struct shell *s)
{
    if (s == NULL)
        return;
    box_destroy(s->box);
    own_fd_drop(&s->out);
    gather_fini(&s->gather);
    ring_fini(&s->ring);
    free(s->command);
    free(s->failure);
    free(s);
}

void shell_ending(const struct shell *s, struct buf *b)
{
    double wall_s = (double)s->result.wall_ms / 1000;
    if (s->failure != NULL) {
        buf_addf(b, "lost: %s", s->failure);
        return;
    }
    switch (s->result.end) {
    case BOX_EXITED:
        buf_addf(b, "exit code %d", s->result.status);
        break;
    case BOX_SIGNALLED:
        buf_addf(b, "ended by signal %d", s->result.status);
        break;
    case BOX_TIMED_OUT:
        buf_addf(b, "killed after %.1f s", wall_s);
        return;
    case BOX_OUT_OF_MEMORY:
        buf_addz(b, "out of memory: something was killed");
        break;
    }
    buf_addf(b, "; %.1f s", wall_s);
}

/* What the command's end left there; it may be anything. */
static struct str cwd_left(const struct tools *t, struct arena *a)
{
    char *text = arena_new(a, char, 4096);
    const char *path = arena_fmt(a, "%s/tmp/.cwd", t->scratch);
    own_fd fd = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
    struct stat st;
    ssize_t n = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? read(fd, text, 4095) : -1;
    unlink(path);
    return n > 0 ? str_trim((struct str){ text, (size_t)n }) : (struct str){ 0 };
}

bool shell_cwd(struct tools *t)
{
    own_arena tmp = { 0 };
    struct err ignored = { 0 };
    struct place p;
    struct stat st;
    struct str left = cwd_left(t, &tmp);
    if (left.len == 0 || left.ptr[0] != '/' || str_eq(left, str_from(t->cwd)))
        return false;
    if (place_find(t->folder, &tmp, left, &p, &ignored) != OK ||
        p.folder != &t->folder[FOLDER_WORKSPACE] || place_look(&p, &st, &ignored) != OK ||
        !S_ISDIR(st.st_mode))
        return false;
    const char *inside =
        strcmp(p.rel, ".") == 0 ? p.folder->inside : path_join(&tmp, p.folder->inside, p.rel);
    char *cwd = strdup(inside);
    if (cwd == NULL)
        return false;
    free(t->cwd);
    t->cwd = cwd;
    return true;
}

void shells_end(struct tools *t)
{
    for (size_t i = 0; i < TOOLS_SHELLS_MAX; i++) {
        shell_free(t->shell[i]);
        t->shell[i] = NULL;
    }
}

static int open_up(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)at;
    return kind == FTW_DNR || (kind == FTW_D && (st->st_mode & 0700) != 0700) ? chmod(path, 0700)
                                                                              : 0;
}

enum err_code shell_remove(const char *path, struct err *err)
{
    if (dir_remove(path, err) == OK)
        return OK;
    *err = (struct err){ 0 };
    nftw(path, open_up, 16, FTW_PHYS | FTW_MOUNT);
    return dir_remove(path, err);
}
