#include "agent/crew.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/own.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/stop.h"

#define SAY_MS 250
#define WAIT_MAX_MS 1000
#define EVENTS_MAX 64
#define CALLERS UINT64_MAX /* the descriptor that is not a member's */
#define STEER_MAX ((size_t)256 << 10)

/* An attempt that is open. */
struct member {
    struct episode *e;   /* NULL: this place is free */
    void *handle;        /* of the ask that is under way */
    int fd[EPISODE_FDS]; /* as they stand in the epoll */
    size_t n_fds;
    bool ready; /* a step may get somewhere */
    bool cancelled;
    int64_t said_ms;
};

struct crew {
    const struct crew_spec *spec;
    struct arena *arena;
    struct agent_outcome *outcome;
    struct member *member; /* owned */
    size_t n_members;
    int next;            /* attempt to open */
    size_t n_open, turn; /* whose turn it is to be first */
    int poll;            /* owned */
    bool stopping;
};

static void limits_raise(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == files.rlim_max)
        return;
    files.rlim_cur = files.rlim_max; /* where it is not enough, an open will say so */
    setrlimit(RLIMIT_NOFILE, &files);
}

/* ---- members ---- */

static void say(struct crew *c, struct member *m)
{
    const struct agent_hooks *h = c->spec->config->hooks;
    struct model *model = c->spec->model;
    own_arena tmp = { 0 };
    if (h->say == NULL)
        return;
    struct agent_status s = episode_status(m->e);
    if (m->handle != NULL && episode_state(m->e) == EPISODE_ANSWER) {
        struct llm_progress p = model->ops->progress(model, m->handle);
        s.text = p.text;
        if (p.state == LLM_WAITING)
            s.doing = arena_fmt(&tmp, "waiting %lld s: %s", (long long)(p.wait_ms + 999) / 1000,
                                fault_name(p.last_fault));
        else if (p.state == LLM_QUEUED)
            s.doing = "waiting for a place at the endpoint";
    }
    m->said_ms = clock_ms();
    h->say(h->ctx, &s);
}

static void outcome_note(struct crew *c, int number, const struct transcript *t)
{
    c->outcome[number - 1] = (struct agent_outcome){ .attempt = number,
                                                     .status = str_z(c->arena, str_from(t->status)),
                                                     .reason = str_z(c->arena, str_from(t->reason)),
                                                     .totals = t->totals,
                                                     .best = json_incref(t->best) };
}

static void outcome_error(struct crew *c, int number, const struct err *why)
{
    struct agent_outcome *o = &c->outcome[number - 1];
    o->attempt = number;
    o->status = "error";
    o->reason = str_z(c->arena, str_from(why->text));
}

static void fds_forget(struct crew *c, struct member *m)
{
    for (size_t i = 0; i < m->n_fds; i++)
        epoll_ctl(c->poll, EPOLL_CTL_DEL, m->fd[i], NULL); /* may be closed already */
    m->n_fds = 0;
}

/* Level-triggered: a descriptor stays until what it stands for has ended. */
static enum err_code fds_watch(struct crew *c, struct member *m, struct err *err)
{
    struct pollfd fd[EPISODE_FDS];
    size_t n = episode_fds(m->e, fd);
    /* Descriptors' numbers are used again: those of a call are registered anew with each step. */
    fds_forget(c, m);
    for (size_t i = 0; i < n; i++) {
        struct epoll_event ev = { .events = EPOLLIN, .data.u64 = (uint64_t)(m - c->member) };
        if (fd[i].fd < 0)
            continue;
        if (epoll_ctl(c->poll, EPOLL_CTL_ADD, fd[i].fd, &ev) != 0 && errno != EEXIST)
            return err_sys(err, "watch a descriptor");
        m->fd[m->n_fds++] = fd[i].fd;
    }
    return OK;
}

static void member_close(struct crew *c, struct member *m)
{
    fds_forget(c, m);
    episode_close(m->e);
    *m = (struct member){ 0 };
    c->n_open--;
}

static void member_fail(struct crew *c, struct member *m, const struct err *why)
{
    outcome_error(c, episode_number(m->e), why);
    episode_fail(m->e, why);
    member_close(c, m);
}

static struct member *place_free(struct crew *c)
{
    for (size_t i = 0; i < c->n_members; i++)
        if (c->member[i].e == NULL)
            return &c->member[i];
    return NULL;
}

static bool member_open(struct crew *c)
{
    struct err why = { 0 };
    struct member *m = c->next > c->spec->n || c->stopping ? NULL : place_free(c);
    if (m == NULL)
        return false;
    struct episode_spec spec = { .config = c->spec->config,
                                 .number = c->next++,
                                 .secrets = c->spec->secrets,
                                 .keep = c->spec->keep,
                                 .has_fallback =
                                     c->spec->model->ops->has_fallback(c->spec->model) };
    if (episode_open(&spec, &m->e, &why) != OK) {
        outcome_error(c, spec.number, &why);
        return true;
    }
    m->ready = true;
    c->n_open++;
    return true;
}

/* ---- a step ---- */

static enum err_code ask(struct crew *c, struct member *m, struct err *err)
{
    struct model *model = c->spec->model;
    struct model_ask a;
    if (c->stopping) /* nobody is asked any more */
        return episode_step(m->e, err);
    episode_ask(m->e, &a);
    a.tag = (uint64_t)(m - c->member);
    m->cancelled = false;
    return model->ops->start(model, &a, &m->handle, err);
}

static enum err_code member_move(struct crew *c, struct member *m, struct err *err)
{
    enum episode_state before = episode_state(m->e);
    enum err_code code = before == EPISODE_ASK ? ask(c, m, err) : episode_step(m->e, err);
    if (code != OK)
        return code;
    enum episode_state now = episode_state(m->e);
    m->ready = now != EPISODE_ANSWER && !episode_waits(m->e);
    return fds_watch(c, m, err);
}

static void step_one(struct crew *c, struct member *m)
{
    struct err why = { 0 };
    enum episode_state before = episode_state(m->e);
    if (member_move(c, m, &why) != OK) {
        member_fail(c, m, &why);
        return;
    }
    if (episode_state(m->e) != before)
        say(c, m);
    if (episode_state(m->e) != EPISODE_ENDED)
        return;
    outcome_note(c, episode_number(m->e), episode_transcript(m->e));
    member_close(c, m);
}

/* Every one that can move, once; another begins each time. */
static bool round_go(struct crew *c)
{
    bool moved = false;
    c->turn = c->n_members > 0 ? (c->turn + 1) % c->n_members : 0;
    for (size_t k = 0; k < c->n_members; k++) {
        struct member *m = &c->member[(c->turn + k) % c->n_members];
        if (m->e == NULL || !m->ready)
            continue;
        step_one(c, m);
        moved = true;
    }
    return moved;
}

/* ---- waiting ---- */

static int64_t wait_of(const struct crew *c)
{
    int64_t now = clock_ms(), wait = WAIT_MAX_MS;
    if (c->spec->config->hooks->say != NULL)
        wait = SAY_MS;
    for (size_t i = 0; i < c->n_members; i++) {
        const struct member *m = &c->member[i];
        int64_t until = m->e ? episode_until(m->e) : INT64_MAX;
        if (m->e != NULL && m->ready)
            return 0;
        if (until != INT64_MAX && until - now < wait)
            wait = until - now;
    }
    return wait < 0 ? 0 : wait;
}

static void times_look(struct crew *c)
{
    int64_t now = clock_ms();
    for (size_t i = 0; i < c->n_members; i++) {
        struct member *m = &c->member[i];
        if (m->e == NULL)
            continue;
        if (episode_until(m->e) <= now)
            m->ready = true;
        if (now - m->said_ms >= SAY_MS)
            say(c, m);
    }
}

static enum err_code fds_look(struct crew *c, struct err *err)
{
    struct epoll_event ev[EVENTS_MAX];
    int n = epoll_wait(c->poll, ev, EVENTS_MAX, 0);
    for (int i = 0; i < n; i++) {
        const struct agent_hooks *h = c->spec->config->hooks;
        if (ev[i].data.u64 == CALLERS) {
            h->pump(h->ctx);
            continue;
        }
        struct member *m = &c->member[ev[i].data.u64];
        if (m->e == NULL)
            continue;
        if (episode_state(m->e) == EPISODE_TOOLS) {
            m->ready = true;
            continue;
        }
        episode_pump(m->e); /* a command in the background */
        if (fds_watch(c, m, err) != OK)
            return err->code;
    }
    return OK;
}

static enum err_code answers_take(struct crew *c, int64_t wait_ms, struct err *err)
{
    struct model *model = c->spec->model;
    struct model_answer a;
    for (;;) {
        if (model->ops->step(model, wait_ms, c->poll, &a, err) != OK)
            return err->code;
        if (a.outcome == NULL)
            return OK;
        struct member *m = &c->member[a.tag];
        struct err why = { 0 };
        m->handle = NULL;
        enum err_code code = episode_answer(m->e, a.outcome, &why);
        model->ops->answer_free(model, &a);
        if (code != OK)
            member_fail(c, m, &why);
        else
            m->ready = true;
        wait_ms = 0;
    }
}

/* ---- the person ---- */

static void stop_look(struct crew *c)
{
    if (!stop_asked() && !c->stopping)
        return;
    c->stopping = true;
    for (size_t i = 0; i < c->n_members; i++) {
        struct member *m = &c->member[i];
        if (m->e == NULL)
            continue;
        episode_stop(m->e);
        if (m->handle != NULL && !m->cancelled)
            c->spec->model->ops->cancel(c->spec->model, m->handle);
        m->cancelled = m->handle != NULL;
        m->ready |= m->handle == NULL;
    }
}

/* OUT/steer goes to every attempt that is open. */
static enum err_code steer_look(struct crew *c, struct err *err)
{
    own_arena tmp = { 0 };
    struct str text;
    const char *path = path_join(&tmp, c->spec->config->out, "steer");
    if (!path_exists(path))
        return OK;
    if (file_read(&tmp, path, STEER_MAX, &text, err) != OK)
        return err->code;
    for (size_t i = 0; i < c->n_members; i++)
        if (c->member[i].e != NULL && episode_steer(c->member[i].e, text, err) != OK)
            return err->code;
    return unlink(path) == 0 ? OK : err_sys(err, "remove '%s'", path);
}

/* ---- all of it ---- */

static enum err_code callers_watch(struct crew *c, struct err *err)
{
    const struct agent_hooks *h = c->spec->config->hooks;
    struct epoll_event ev = { .events = EPOLLIN, .data.u64 = CALLERS };
    if (h->has_fd && epoll_ctl(c->poll, EPOLL_CTL_ADD, h->fd, &ev) != 0)
        return err_sys(err, "watch the caller's descriptor");
    return OK;
}

static enum err_code crew_go(struct crew *c, struct err *err)
{
    if (callers_watch(c, err) != OK)
        return err->code;
    while (c->n_open > 0 || c->next <= c->spec->n) {
        stop_look(c);
        bool opened = member_open(c);
        if (c->n_open == 0 && !opened)
            break; /* stopped before the rest was opened */
        if (steer_look(c, err) != OK)
            return err->code;
        bool moved = round_go(c) || opened;
        if (answers_take(c, moved ? 0 : wait_of(c), err) != OK)
            return err->code;
        if (fds_look(c, err) != OK)
            return err->code;
        times_look(c);
    }
    return OK;
}

static void rest_note(struct crew *c)
{
    for (int i = 0; i < c->spec->n; i++)
        if (c->outcome[i].status == NULL)
            c->outcome[i] = (struct agent_outcome){ i + 1, "stopped", "not begun", { 0 }, NULL };
}

enum err_code crew_run(const struct crew_spec *spec, struct arena *a,
                       struct agent_outcome **ret_outcomes, struct err *err)
{
    struct crew c = { .spec = spec, .arena = a, .next = 1 };
    int active = spec->config->active_max;
    limits_raise();
    c.n_members = (size_t)(active > 0 && active < spec->n ? active : spec->n);
    c.outcome = arena_new(a, struct agent_outcome, (size_t)spec->n);
    c.poll = epoll_create1(EPOLL_CLOEXEC);
    c.member = calloc(c.n_members, sizeof *c.member);
    enum err_code code = OK;
    if (c.poll < 0 || c.member == NULL)
        code = err_sys(err, "no memory for %zu attempts", c.n_members);
    if (code == OK)
        code = crew_go(&c, err);
    for (size_t i = 0; c.member != NULL && i < c.n_members; i++)
        if (c.member[i].e != NULL)
            member_close(&c, &c.member[i]);
    own_fd_drop(&c.poll);
    free(c.member);
    if (code != OK)
        return code;
    rest_note(&c);
    *ret_outcomes = c.outcome;
    return OK;
}
