#include "agent/episode_int.h"

#include <stdlib.h>

#include "agent/context.h"
#include "agent/parts.h"
#include "agent/prompt.h"
#include "core/json.h"
#include "sys/clock.h"
#include "sys/file.h"

/* ---- events ---- */

enum err_code episode_put(struct episode *e, const char *name, json_t *body, struct err *err)
{
    own_json event = NULL;
    const struct agent_hooks *h = e->config->hooks;
    if (log_put(&e->log, name, body, &event, err) != OK ||
        transcript_apply(&e->t, event, err) != OK)
        return err_within(err, "attempt %d", e->spec.number);
    if (h->on_event != NULL)
        h->on_event(h->ctx, e->spec.number, event);
    return OK;
}

void episode_become(struct episode *e, enum episode_state state)
{
    e->state = state;
    e->since_ms = clock_ms();
}

/* ---- opening ---- */

/* Fold the events before `until` (a seq; -1: all). */
static enum err_code fold(struct transcript *t, const json_t *alive, int64_t until, struct err *err)
{
    size_t i;
    const json_t *event;
    transcript_fini(t);
    transcript_init(t);
    json_array_foreach(alive, i, event)
    {
        if (until >= 0 && member_int(event, "seq") >= until)
            break;
        if (transcript_apply(t, event, err) != OK)
            return err->code;
    }
    return OK;
}

static int64_t seq_of_last(const json_t *alive, const char *name)
{
    for (size_t i = json_array_size(alive); i-- > 0;) {
        const json_t *event = json_array_get(alive, i);
        if (str_eq(member_text(event, "event"), str_from(name)))
            return member_int(event, "seq");
    }
    return -1;
}

/* An end that may be gone on from: ^C, a failure, a budget that has become larger. */
static bool may_go_on(const struct episode *e)
{
    static const char *const passing[] = { "stopped", "endpoint", "error" };
    struct str status = str_from(e->t.status);
    for (size_t i = 0; i < COUNT(passing); i++)
        if (str_eq(status, str_from(passing[i])))
            return true;
    for (enum budget_of k = 0; k < BUDGET_KINDS; k++) {
        double limit = budget_limit(&e->budget, k);
        if (str_eq(status, str_from(budget_name(k))))
            return limit <= 0 || budget_used(&e->t.totals, k) < limit;
    }
    return false;
}

/* The state at the last turn that is whole; *ret_from: seq from which on nothing counts. */
static enum err_code state_read(struct episode *e, const json_t *events, int64_t *ret_from,
                                struct err *err)
{
    own_json alive = log_alive(events);
    int64_t from = e->log.seq;
    if (fold(&e->t, alive, -1, err) != OK)
        return err->code;
    if (e->t.status != NULL && !may_go_on(e)) {
        episode_become(e, EPISODE_ENDED);
        return OK;
    }
    if (e->t.status != NULL)
        from = seq_of_last(alive, "run_end");
    if (e->t.flight.open)
        from = e->t.flight.seq;
    *ret_from = from;
    if (from == e->log.seq)
        return OK;
    return fold(&e->t, alive, from, err);
}

static enum err_code folders_make(struct episode *e, struct err *err)
{
    const char *out = e->config->out;
    struct agent_attempt *a = &e->attempt;
    a->number = e->spec.number;
    a->episode = e;
    a->dir = path_join(&e->arena, out, arena_fmt(&e->arena, "attempt-%d", a->number));
    a->workspace = path_join(&e->arena, a->dir, "workspace");
    e->objects = path_join(&e->arena, a->dir, "objects");
    e->steer_path = path_join(&e->arena, a->dir, "steer");
    e->tokens_path = path_join(&e->arena, a->dir, "tokens.bin");
    if (dir_make(a->workspace, 0755, err) != OK)
        return err->code;
    return dir_make(e->objects, 0755, err);
}

/* Tools as requests have them, from those of `run_start`. */
static void chat_tools(struct episode *e, const json_t *tools)
{
    size_t i;
    const json_t *j;
    e->tool = arena_new(&e->arena, struct chat_tool, json_array_size(tools));
    json_array_foreach(tools, i, j)
    {
        const json_t *f = json_object_get(j, "function");
        own_mem char *schema = json_dumps(json_object_get(f, "parameters"), JSON_COMPACT);
        e->tool[e->n_tools++] =
            (struct chat_tool){ .name = str_copy(&e->arena, member_text(f, "name")),
                                .description = str_copy(&e->arena, member_text(f, "description")),
                                .schema = str_copy(&e->arena, str_from(schema)) };
    }
}

static enum err_code session_open(struct episode *e, struct err *err)
{
    const struct agent_hooks *h = e->config->hooks;
    e->tools_spec = (struct tools_spec){ .workspace = e->attempt.workspace };
    /* Before the first tree is known, what lies there is what a process that died had begun. */
    if (e->t.files == NULL && (dir_remove(e->attempt.workspace, err) != OK ||
                               dir_make(e->attempt.workspace, 0755, err) != OK))
        return err->code;
    e->prepared = true;
    if (h->prepare(h->ctx, &e->attempt, &e->tools_spec, err) != OK)
        return err_within(err, "prepare attempt %d", e->spec.number);
    if (e->t.files != NULL &&
        snapshot_restore(e->attempt.workspace, e->objects, e->t.files, err) != OK)
        return err->code;
    if (tools_open(&e->tools_spec, &e->tools, err) != OK)
        return err->code;
    if (h->bind != NULL)
        h->bind(h->ctx, &e->attempt, e->tools);
    return OK;
}

static enum err_code resumed_put(struct episode *e, int64_t from, struct err *err)
{
    return episode_put(e, "resumed",
                       json_pack("{s:I, s:s}", "dropped_from", (json_int_t)from, "tree", e->t.tree),
                       err);
}

static json_t *sampling_json(const struct chat_sampling *s)
{
    json_t *j =
        json_pack("{s:I, s:b}", "max_tokens", (json_int_t)s->max_tokens, "thinking", s->thinking);
    if (s->has_temperature)
        json_object_set_new(j, "temperature", json_real(s->temperature));
    if (s->has_top_p)
        json_object_set_new(j, "top_p", json_real(s->top_p));
    if (s->has_seed)
        json_object_set_new(j, "seed", json_integer(s->seed));
    return j;
}

static json_t *endpoint_json(const struct agent_config *c)
{
    const struct llm_spec *s = c->endpoint;
    if (c->model_log != NULL || s == NULL)
        return json_pack("{s:s, s:s, s:s}", "url", "log:", "model", "log", "dialect", "openai");
    return json_pack("{s:s, s:s, s:s}", "url", s->base_url, "model", s->model, "dialect",
                     s->dialect == DIALECT_OPENAI ? "openai" : "anthropic");
}

static const char *or_empty(const char *z)
{
    return z ? z : "";
}

static enum err_code run_start_put(struct episode *e, json_t *tools, struct err *err)
{
    const struct agent_config *c = e->config;
    own_arena tmp = { 0 };
    json_t *body = json_pack(
        "{s:s, s:s, s:i, s:{s:s, s:s}, s:s, s:s, s:o, s:o, s:o, s:o, s:O, s:{s:s}}", "schema",
        "cuda-agent/episode/1", "episode",
        arena_fmt(&tmp, "%s-%d-%lld", or_empty(c->task_name), e->spec.number,
                  (long long)clock_utc_us()),
        "attempt", e->spec.number, "task", "name", or_empty(c->task_name), "hash",
        or_empty(c->task_hash), "target", or_empty(c->target), "contract", or_empty(c->contract),
        "endpoint", endpoint_json(c), "sampling", sampling_json(&e->sampling), "budget",
        budget_json(&e->budget), "system", text_json(prompt_system(&tmp, c)), "tools", tools,
        "versions", "product", CA_VERSION_TEXT);
    if (body != NULL && c->skill_name != NULL)
        json_object_set_new(
            body, "skill",
            json_pack("{s:s, s:s}", "name", c->skill_name, "hash", or_empty(c->skill_hash)));
    return episode_put(e, "run_start", body, err);
}

static void defaults(struct episode *e)
{
    e->sampling = e->config->sampling;
    if (e->sampling.max_tokens <= 0)
        e->sampling.max_tokens = AGENT_MAX_TOKENS;
    e->budget = e->config->budget;
    if (e->budget.turns <= 0)
        e->budget.turns = AGENT_TURNS;
}

/* A folder belongs to one task. */
static enum err_code task_check(const struct episode *e, const json_t *events, struct err *err)
{
    const json_t *task = json_object_get(json_array_get(events, 0), "task");
    struct str was = member_text(task, "hash");
    if (str_eq(was, str_from(or_empty(e->config->task_hash))))
        return OK;
    struct str name = member_text(task, "name");
    err_raise(err, ERR_STATE, "'%s' is work on another task ('%.*s')", e->attempt.dir,
              (int)(name.len < 100 ? name.len : 100), name.ptr);
    return err_hint(err, "choose another folder with --out");
}

static const json_t *tools_logged(const json_t *events)
{
    const json_t *first = json_array_get(events, 0);
    return json_object_get(first, "tools");
}

static enum err_code open_all(struct episode *e, struct err *err)
{
    own_json events = NULL;
    own_json tools = NULL;
    int64_t from = 0;
    if (folders_make(e, err) != OK ||
        log_open(&e->log, &e->arena, path_join(&e->arena, e->attempt.dir, "events.jsonl"), &events,
                 err) != OK ||
        (e->log.seq > 0 && task_check(e, events, err) != OK) ||
        state_read(e, events, &from, err) != OK)
        return err->code;
    if (e->state == EPISODE_ENDED)
        return e->t.best ? keep_offer(e->spec.keep, e->spec.number, e->t.best, e->objects, err)
                         : OK;
    e->attempt.resumed = e->log.seq > 0;
    if (session_open(e, err) != OK)
        return err->code;
    tools = e->attempt.resumed ? json_incref((json_t *)(uintptr_t)tools_logged(events))
                               : tools_schema(e->tools, TOOL_OPENAI);
    chat_tools(e, tools);
    if (!e->attempt.resumed)
        return run_start_put(e, tools, err);
    if (resumed_put(e, from, err) != OK)
        return err->code;
    if (e->t.best != NULL &&
        keep_offer(e->spec.keep, e->spec.number, e->t.best, e->objects, err) != OK)
        return err->code;
    episode_session_restore(e);
    return OK;
}

enum err_code episode_open(const struct episode_spec *spec, struct episode **ret, struct err *err)
{
    struct episode *e = calloc(1, sizeof *e);
    if (e == NULL)
        return err_sys(err, "no memory for an attempt");
    e->spec = *spec;
    e->config = spec->config;
    e->log = (struct log)LOG_CLOSED;
    e->log.secrets = spec->secrets;
    e->log.unsynced = spec->config->unsynced;
    transcript_init(&e->t);
    defaults(e);
    episode_become(e, EPISODE_NEXT);
    if (open_all(e, err) != OK) {
        err_within(err, "attempt %d", spec->number);
        episode_close(e);
        return err->code;
    }
    e->mark_ms = clock_ms();
    *ret = e;
    return OK;
}

void episode_close(struct episode *e)
{
    if (e == NULL)
        return;
    const struct agent_hooks *h = e->config->hooks;
    episode_tools_drop(e);
    if (e->tools != NULL && h->bind != NULL)
        h->bind(h->ctx, &e->attempt, NULL);
    tools_close(e->tools);
    if (e->prepared && h->release != NULL)
        h->release(h->ctx, &e->attempt);
    log_close(&e->log);
    transcript_fini(&e->t);
    snapshot_fini(&e->snapshot);
    arena_fini(&e->turn_arena);
    arena_fini(&e->arena);
    free(e);
}

/* ---- for who drives it ---- */

enum err_code episode_step(struct episode *e, struct err *err)
{
    switch (e->state) {
    case EPISODE_NEXT:
        return episode_next(e, err);
    case EPISODE_TOOLS:
        return episode_tools_step(e, err);
    case EPISODE_TURN:
        return episode_turn_end(e, err);
    case EPISODE_ASK: /* asked for nobody: the person wants it to stop */
        return e->stop ? episode_end(e, "stopped", "by the person", err) : OK;
    case EPISODE_ANSWER:
    case EPISODE_ENDED:
        break;
    }
    return OK;
}

void episode_fail(struct episode *e, const struct err *why)
{
    struct err ignored = { 0 }; /* it may be the log that has failed */
    json_t *body = json_pack("{s:s, s:o}", "code", err_name(why->code), "text",
                             text_json(str_from(why->text)));
    if (episode_put(e, "error", body, &ignored) == OK &&
        episode_end(e, "error", why->text, &ignored) == OK)
        return;
}

void episode_stop(struct episode *e)
{
    e->stop = true;
}

enum episode_state episode_state(const struct episode *e)
{
    return e->state;
}

const struct transcript *episode_transcript(const struct episode *e)
{
    return &e->t;
}

int episode_number(const struct episode *e)
{
    return e->spec.number;
}

size_t episode_fds(const struct episode *e, struct pollfd ret[EPISODE_FDS])
{
    size_t n = 0;
    if (e->call != NULL)
        n += tool_call_fds(e->call, ret);
    if (e->tools != NULL)
        n += tools_fds(e->tools, ret + n);
    return n;
}

bool episode_waits(const struct episode *e)
{
    return e->call != NULL && !tool_call_done(e->call);
}

int64_t episode_until(const struct episode *e)
{
    return e->call != NULL ? tool_call_until(e->call) : INT64_MAX;
}

void episode_pump(struct episode *e)
{
    if (e->tools != NULL)
        tools_pump(e->tools);
}

enum err_code episode_steer(const struct episode *e, struct str text, struct err *err)
{
    return file_write(e->steer_path, text, 0644, err);
}

static const char *doing(const struct episode *e)
{
    switch (e->state) {
    case EPISODE_ASK:
    case EPISODE_ANSWER:
        return e->t.flight.summary ? "summing up" : "asking";
    case EPISODE_TOOLS:
        return e->call != NULL && e->call->row != NULL ? e->call->row->name : "tools";
    case EPISODE_ENDED:
        return e->t.status ? e->t.status : "ended";
    case EPISODE_NEXT:
    case EPISODE_TURN:
        break;
    }
    return "between turns";
}

struct agent_status episode_status(const struct episode *e)
{
    struct agent_status s = { .attempt = e->spec.number,
                              .turn = e->t.next_turn,
                              .context_share = context_share(&e->t, &e->budget),
                              .totals = episode_totals(e),
                              .doing = doing(e),
                              .doing_ms = clock_ms() - e->since_ms };
    for (size_t i = 0; i < e->t.n_graded; i++)
        if (e->t.graded[i].best) {
            s.best_us = e->t.graded[i].us;
            s.best_milestone = e->t.graded[i].milestone;
        }
    return s;
}
