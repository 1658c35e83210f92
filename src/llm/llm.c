#include "llm/llm.h"

#include <stdlib.h>
#include <sys/random.h>

#include "core/own.h"
#include "llm/llm_int.h"
#include "sys/clock.h"

#define CHANGES_MAX 16 /* of a call on its way; more is going round in circles */
#define CHANGES_BYTES 4096
#define ROOM_SPARE 64 /* tokens left free when max_tokens is lowered */
#define ROOM_MIN 256  /* fewer are no answer */
#define WAIT_FOREVER_MS 3600000

/* ---- the loop ---- */

enum err_code llm_open(struct llm **ret, struct err *err)
{
    struct llm *l = calloc(1, sizeof *l);
    if (l == NULL)
        return err_sys(err, "no memory for a loop");
    l->watch_fd = -1;
    if (getrandom(&l->random, sizeof l->random, 0) != sizeof l->random)
        l->random = (uint64_t)clock_ns();
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK ||
        (l->multi = curl_multi_init()) == NULL) {
        free(l);
        return err_raise(err, ERR_SYSTEM, "libcurl does not start");
    }
    *ret = l;
    return OK;
}

void llm_close(struct llm *l)
{
    if (l == NULL)
        return;
    for (size_t i = 0; i < l->n_calls; i++)
        llm_call_free(l->calls[i]);
    free(l->calls);
    while (l->endpoints != NULL) {
        struct llm_endpoint *e = l->endpoints;
        l->endpoints = e->next;
        endpoint_free(e);
    }
    curl_multi_cleanup(l->multi);
    curl_global_cleanup();
    free(l);
}

void llm_wake(struct llm *l)
{
    curl_multi_wakeup(l->multi);
}

void llm_watch(struct llm *l, int fd)
{
    l->watch_fd = fd;
}

/* splitmix64 */
static uint64_t random_next(struct llm *l)
{
    uint64_t z = l->random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* ---- calls ---- */

enum err_code llm_start(struct llm *l, const struct llm_ask *ask, struct llm_call **ret,
                        struct err *err)
{
    if (l->n_calls == l->cap_calls) {
        size_t cap = l->cap_calls ? l->cap_calls * 2 : 64;
        struct llm_call **more = reallocarray(l->calls, cap, sizeof(struct llm_call *));
        if (more == NULL)
            return err_sys(err, "no memory for %zu calls", cap);
        l->calls = more;
        l->cap_calls = cap;
    }
    struct llm_call *c = calloc(1, sizeof *c);
    if (c == NULL)
        return err_sys(err, "no memory for a call");
    c->loop = l;
    c->endpoint = ask->endpoint;
    c->ask = *ask;
    c->unstreamed = ask->whole;
    c->started_ms = c->ready_ms = clock_ms();
    c->changes = (struct buf){ .arena = &c->arena, .max = CHANGES_BYTES };
    c->outcome.first_byte_ms = -1;
    l->calls[l->n_calls++] = c;
    *ret = c;
    return OK;
}

void llm_cancel(struct llm_call *c)
{
    c->cancelled = true;
}

void llm_call_free(struct llm_call *c)
{
    if (c == NULL)
        return;
    if (c->state == LLM_IN_FLIGHT)
        c->endpoint->n_in_flight--;
    try_drop(c);
    arena_fini(&c->arena);
    free(c);
}

const struct llm_outcome *llm_call_outcome(const struct llm_call *c)
{
    return &c->outcome;
}

uint64_t llm_call_tag(const struct llm_call *c)
{
    return c->ask.tag;
}

struct llm_progress llm_call_progress(const struct llm_call *c)
{
    struct llm_progress p = { .state = c->state, .last_fault = c->last_fault };
    int64_t now = clock_ms();
    if (c->state == LLM_WAITING && c->ready_ms > now)
        p.wait_ms = c->ready_ms - now;
    if (c->assembly != NULL && c->state == LLM_IN_FLIGHT)
        p.text = assembly_text(c->assembly);
    return p;
}

/* ---- after a try ---- */

static void call_end(struct llm_call *c)
{
    c->state = LLM_ENDED;
    c->outcome.wall_ms = clock_ms() - c->started_ms;
    c->outcome.changes = (struct str){ c->changes.ptr ? c->changes.ptr : "", c->changes.len };
}

static void call_again(struct llm_call *c, int64_t wait_ms)
{
    c->last_fault = c->outcome.fault.kind;
    c->state = wait_ms > 0 ? LLM_WAITING : LLM_QUEUED;
    c->ready_ms = clock_ms() + wait_ms;
}

/* Full jitter: anything up to a bound that doubles. What the server says comes first. */
static int64_t wait_of(struct llm_call *c)
{
    const struct llm_times *t = &c->endpoint->spec.times;
    const struct fault *f = &c->outcome.fault;
    int64_t bound = t->backoff_ms;
    for (int i = 1; i < c->outcome.n_tries && bound < t->backoff_max_ms; i++)
        bound *= 2;
    bound = bound < t->backoff_max_ms ? bound : t->backoff_max_ms;
    int64_t jitter = (int64_t)(random_next(c->loop) % ((uint64_t)bound + 1));
    if (!f->has_wait)
        return jitter;
    int64_t said = f->wait_ms < t->wait_max_ms ? f->wait_ms : t->wait_max_ms;
    return said + jitter % (t->backoff_ms + 1);
}

/* Where the server named a time, it holds for all who would ask it. */
static void call_wait(struct llm_call *c)
{
    struct llm_endpoint *e = c->endpoint;
    call_again(c, wait_of(c));
    if (c->outcome.fault.has_wait && c->ready_ms > e->ready_ms)
        e->ready_ms = c->ready_ms;
}

static int64_t may_begin_ms(const struct llm_call *c)
{
    return c->ready_ms > c->endpoint->ready_ms ? c->ready_ms : c->endpoint->ready_ms;
}

static void change_note(struct llm_call *c, const char *what)
{
    buf_addf(&c->changes, "%s%s", c->changes.len > 0 ? "\n" : "", what);
    c->n_changes++;
}

static bool of_fields(const struct fault *f)
{
    return f->kind == FAULT_PARAMETER || f->kind == FAULT_HISTORY || f->kind == FAULT_REQUEST ||
           (f->kind == FAULT_SERVER && f->status == 501);
}

/* The ladder was gone down in vain: the fault was another, and the endpoint takes what it took. */
static void ladder_undo(struct llm_call *c)
{
    if (c->degraded && of_fields(&c->outcome.fault) &&
        compat_equal(&c->compat, &c->endpoint->compat))
        c->endpoint->compat = c->before;
}

/* Whether the call goes out again at once, another way than before. */
static bool changed(struct llm_call *c)
{
    const struct fault *f = &c->outcome.fault;
    const char *what = NULL;
    if (c->ask.chat == NULL || c->n_changes >= CHANGES_MAX)
        return false;
    if (f->kind == FAULT_NONE) {
        if (!(c->outcome.reply.notes & NOTE_ARGS_BROKEN) || !c->asked_stream || c->unstreamed)
            return false;
        c->unstreamed = true;
        change_note(c, "asked again without a stream: arguments came broken");
        return true;
    }
    if (f->kind == FAULT_ROOM) {
        int64_t room = f->n_window - f->n_prompt - ROOM_SPARE;
        int64_t asked = c->max_tokens > 0 ? c->max_tokens : c->ask.sampling->max_tokens;
        if (room < ROOM_MIN || room >= asked)
            return false;
        c->max_tokens = room;
        change_note(c, "fewer max_tokens: only so many fit behind the prompt");
        return true;
    }
    if (!of_fields(f))
        return false;
    if (!compat_equal(&c->compat, &c->endpoint->compat)) { /* another call has found out */
        change_note(c, "as another call's refusal taught");
        return true;
    }
    struct compat before = c->endpoint->compat;
    if (!compat_degrade(&c->endpoint->compat, f, c->ask.sampling, &what))
        return false;
    if (!c->degraded)
        c->before = before;
    c->degraded = true;
    change_note(c, what);
    return true;
}

static void call_settle(struct llm_call *c)
{
    c->endpoint->n_in_flight--;
    c->state = LLM_QUEUED;
    if (changed(c))
        call_again(c, 0);
    else if (fault_again(c->outcome.fault.kind) && c->outcome.n_tries < c->endpoint->spec.tries_max)
        call_wait(c);
    else {
        ladder_undo(c);
        call_end(c);
    }
    /* The handle goes, so that its connection is free; the answer stays until the next try. */
    if (c->easy != NULL) {
        curl_multi_remove_handle(c->loop->multi, c->easy);
        curl_easy_cleanup(c->easy);
        c->easy = NULL;
    }
    free(c->request);
    c->request = NULL;
}

/* ---- a step ---- */

static void call_begin(struct llm_call *c)
{
    struct err err = { 0 };
    c->outcome.n_tries++;
    c->id_seed = random_next(c->loop);
    c->endpoint->n_in_flight++;
    c->state = LLM_IN_FLIGHT;
    if (try_begin(c, &err) == OK)
        return;
    c->endpoint->n_in_flight--;
    c->outcome.fault = fault_ours(&c->arena, FAULT_REQUEST, "%s", err.text);
    c->outcome.reply = (struct reply){ .end = REPLY_FAILED, .fault = c->outcome.fault };
    call_end(c);
}

static void call_cancel(struct llm_call *c)
{
    if (c->state == LLM_IN_FLIGHT)
        c->endpoint->n_in_flight--;
    try_drop(c);
    c->outcome.fault = fault_ours(&c->arena, FAULT_CANCELLED, "cancelled");
    c->outcome.generated = (struct generated){ 0 };
    c->outcome.reply = (struct reply){ .end = REPLY_FAILED, .fault = c->outcome.fault };
    call_end(c);
}

/* Start what may start, end what is cancelled or late; returns when to look again. */
static int64_t calls_tend(struct llm *l)
{
    bool moved = false; /* a slot may be free for one that was passed over */
    int64_t now = clock_ms(), due = now + WAIT_FOREVER_MS;
    for (size_t i = 0; i < l->n_calls; i++) {
        struct llm_call *c = l->calls[i];
        if (c->state == LLM_ENDED)
            continue;
        if (c->cancelled) {
            call_cancel(c);
            moved = true;
            continue;
        }
        if (c->state != LLM_IN_FLIGHT && may_begin_ms(c) <= now &&
            c->endpoint->n_in_flight < c->endpoint->spec.in_flight_max)
            call_begin(c);
        if (c->state == LLM_IN_FLIGHT && try_deadline(c) <= now) {
            try_end(c, CURLE_OK, try_late(c));
            call_settle(c);
            moved = true;
        }
        int64_t begin = may_begin_ms(c);
        int64_t at = c->state == LLM_IN_FLIGHT ? try_deadline(c) : begin > now ? begin : due;
        due = at < due ? at : due;
    }
    return moved ? now : due;
}

static bool transfers_end(struct llm *l)
{
    CURLMsg *m;
    int left;
    bool moved = false;
    while ((m = curl_multi_info_read(l->multi, &left)) != NULL) {
        struct llm_call *c = NULL;
        CURLcode code = m->data.result;
        if (m->msg != CURLMSG_DONE ||
            curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &c) != CURLE_OK || c == NULL)
            continue;
        try_end(c, code, NULL);
        call_settle(c);
        moved = true;
    }
    return moved;
}

static struct llm_call *ended_take(struct llm *l)
{
    for (size_t i = 0; i < l->n_calls; i++) {
        struct llm_call *c = l->calls[i];
        if (c->state != LLM_ENDED)
            continue;
        memmove(&l->calls[i], &l->calls[i + 1], (l->n_calls - i - 1) * sizeof(struct llm_call *));
        l->n_calls--;
        return c;
    }
    return NULL;
}

enum err_code llm_step(struct llm *l, int64_t wait_ms, struct llm_call **ret_ended, struct err *err)
{
    bool waited = false;
    for (;;) {
        int running;
        int64_t due = calls_tend(l);
        CURLMcode code = curl_multi_perform(l->multi, &running);
        if (code != CURLM_OK)
            return err_raise(err, ERR_SYSTEM, "libcurl: %s", curl_multi_strerror(code));
        bool moved = transfers_end(l);
        *ret_ended = ended_take(l);
        if (*ret_ended != NULL || waited || wait_ms <= 0)
            return OK;
        if (moved) /* a call may go out again, or another take its place */
            continue;
        int64_t left = due - clock_ms();
        left = left < 0 ? 0 : left < wait_ms ? left : wait_ms;
        struct curl_waitfd watch = { .fd = l->watch_fd, .events = CURL_WAIT_POLLIN };
        code = curl_multi_poll(l->multi, &watch, l->watch_fd >= 0, (int)left, NULL);
        waited = true;
        if (code != CURLM_OK)
            return err_raise(err, ERR_SYSTEM, "libcurl: %s", curl_multi_strerror(code));
    }
}
