#include <poll.h>
#include <stdlib.h>

#include "agent/log.h"
#include "agent/model.h"
#include "agent/parts.h"
#include "core/json.h"
#include "sys/clock.h"
#include "sys/file.h"

#define LOG_MAX ((size_t)1 << 30)
#define WAIT_MAX_MS 60000
#define TURNS_MAX 1000000 /* of a log */

/* One ask, in the order in which they came; its answer. */
struct asked {
    struct asked *next;
    struct arena arena;
    struct llm_outcome outcome;
    int64_t turn, due_ms;
    uint64_t tag;
    bool cancelled;
};

struct model_log {
    struct model model;
    json_t *answers; /* `response` events by turn; null where there is none */
    int64_t wait_ms;
    struct asked *first, **last;
};

static struct model_log *of(struct model *m)
{
    return (struct model_log *)m;
}

static enum err_code start(struct model *m, const struct model_ask *ask, void **ret_handle,
                           struct err *err)
{
    struct model_log *l = of(m);
    struct asked *a = calloc(1, sizeof *a);
    if (a == NULL)
        return err_sys(err, "no memory for an ask");
    a->turn = ask->turn;
    a->tag = ask->tag;
    a->due_ms = clock_ms() + l->wait_ms;
    *l->last = a;
    l->last = &a->next;
    *ret_handle = a;
    return OK;
}

static void answer_fill(struct model_log *l, struct asked *a)
{
    struct err err = { 0 };
    struct llm_outcome *o = &a->outcome;
    const json_t *event = json_array_get(l->answers, (size_t)a->turn);
    o->n_tries = 1;
    o->first_byte_ms = 0;
    o->changes = S("");
    if (a->cancelled)
        o->fault = fault_ours(&a->arena, FAULT_CANCELLED, "cancelled");
    else if (!json_is_object(event))
        o->fault = fault_ours(&a->arena, FAULT_REQUEST,
                              "the recorded log has no answer to turn %lld", (long long)a->turn);
    else if (response_read(&a->arena, event, &o->reply, &err) != OK)
        o->fault = fault_ours(&a->arena, FAULT_REQUEST, "the recorded log: %s", err.text);
    else {
        o->fault = o->reply.fault;
        return;
    }
    o->reply = (struct reply){ .end = REPLY_FAILED, .fault = o->fault };
}

static int wait_of(const struct model_log *l, int64_t wait_ms)
{
    int64_t left = l->first == NULL      ? wait_ms
                   : l->first->cancelled ? 0
                                         : l->first->due_ms - clock_ms();
    left = left < wait_ms ? left : wait_ms;
    return (int)(left < 0 ? 0 : left < WAIT_MAX_MS ? left : WAIT_MAX_MS);
}

static enum err_code step(struct model *m, int64_t wait_ms, int watch_fd, struct model_answer *ret,
                          struct err *err)
{
    struct model_log *l = of(m);
    struct pollfd fd = { .fd = watch_fd, .events = POLLIN };
    int wait = wait_of(l, wait_ms);
    if (wait > 0 && poll(&fd, 1, wait) < 0 && errno != EINTR)
        return err_sys(err, "wait");
    struct asked *a = l->first;
    if (a == NULL || (!a->cancelled && a->due_ms > clock_ms())) {
        *ret = (struct model_answer){ 0 };
        return OK;
    }
    l->first = a->next;
    if (l->first == NULL)
        l->last = &l->first;
    answer_fill(l, a);
    *ret = (struct model_answer){ a->tag, &a->outcome, a };
    return OK;
}

static void cancel(struct model *m, void *handle)
{
    (void)m;
    ((struct asked *)handle)->cancelled = true;
}

static struct llm_progress progress(const struct model *m, const void *handle)
{
    (void)m, (void)handle;
    return (struct llm_progress){ .state = LLM_IN_FLIGHT };
}

static void asked_free(struct asked *a)
{
    arena_fini(&a->arena);
    free(a);
}

static void answer_free(struct model *m, struct model_answer *answer)
{
    (void)m;
    if (answer->own != NULL)
        asked_free(answer->own);
    *answer = (struct model_answer){ 0 };
}

static void close_log(struct model *m)
{
    struct model_log *l = of(m);
    while (l->first != NULL) {
        struct asked *a = l->first;
        l->first = a->next;
        asked_free(a);
    }
    json_decref(l->answers);
    free(l);
}

static bool has_fallback(const struct model *m)
{
    (void)m;
    return false;
}

static json_t *answers_of(const json_t *events)
{
    own_json alive = log_alive(events);
    json_t *answers = json_array();
    size_t i;
    json_t *e;
    json_array_foreach(alive, i, e)
    {
        int64_t turn = member_int(e, "turn");
        if (!str_eq(member_text(e, "event"), S("response")) || turn < 0 || turn > TURNS_MAX)
            continue;
        while ((int64_t)json_array_size(answers) <= turn)
            json_array_append_new(answers, json_null());
        json_array_set(answers, (size_t)turn, e);
    }
    return answers;
}

enum err_code model_open_log(const char *path, int64_t wait_ms, struct model **ret, struct err *err)
{
    static const struct model_ops ops = { .start = start,
                                          .step = step,
                                          .cancel = cancel,
                                          .progress = progress,
                                          .answer_free = answer_free,
                                          .close = close_log,
                                          .has_fallback = has_fallback };
    own_arena tmp = { 0 };
    own_json events = NULL;
    struct str text;
    size_t whole;
    if (file_read(&tmp, path, LOG_MAX, &text, err) != OK ||
        runlog_parse(text, &events, &whole, err) != OK)
        return err_within(err, "the recorded log");
    struct model_log *l = calloc(1, sizeof *l);
    if (l == NULL)
        return err_sys(err, "no memory for a model");
    l->model.ops = &ops;
    l->answers = answers_of(events);
    l->wait_ms = wait_ms;
    l->last = &l->first;
    *ret = &l->model;
    return OK;
}
