/* What comes between two turns: rules, looked at in order; each writes one event at most, so that a
 * death between any two of them is gone on from where it was. */
#include <math.h>
#include <unistd.h>

#include "agent/context.h"
#include "agent/episode_int.h"
#include "agent/parts.h"
#include "agent/prompt.h"
#include "core/own.h"
#include "sys/clock.h"
#include "sys/file.h"

#define STEER_MAX ((size_t)256 << 10)
#define TODO_TURNS 15  /* without a word about the list of what is to be done */
#define ROOM_SPARE 512 /* tokens that an estimate may be off by */
#define ROOM_MIN 256   /* fewer are no answer */

struct totals episode_totals(const struct episode *e)
{
    struct totals sum = e->t.totals;
    const struct totals *used = &e->t.flight.used;
    sum.turns += e->t.flight.answered;
    sum.input += used->input;
    sum.cached += used->cached;
    sum.output += used->output;
    sum.cost += used->cost;
    sum.seconds += (double)(clock_ms() - e->mark_ms) / 1000;
    return sum;
}

static enum err_code message_put(struct episode *e, const char *kind, const char *about,
                                 struct str text, struct err *err)
{
    json_t *body = json_pack("{s:I, s:s, s:o}", "index", (json_int_t)e->t.n, "kind", kind, "parts",
                             parts_text(text));
    if (body != NULL && about != NULL)
        json_object_set_new(body, "about", json_string(about));
    return episode_put(e, "message", body, err);
}

/* ---- the start ---- */

static enum err_code begin(struct episode *e, bool *ret_done, struct err *err)
{
    own_arena tmp = { 0 };
    *ret_done = e->t.files == NULL || e->t.n == 0;
    if (e->t.files == NULL)
        return episode_files(e, -1, err);
    return *ret_done ? message_put(e, "task", NULL, prompt_task(&tmp, e->config), err) : OK;
}

/* ---- the end ---- */

struct ending {
    const char *status, *reason;
};

static bool target_met(const struct episode *e)
{
    const json_t *reward = json_object_get(json_object_get(e->t.best, "verdict"), "reward");
    return e->config->gate > 0 && reward != NULL &&
           member_int(reward, "milestone") >= e->config->gate;
}

static bool budget_over(const struct episode *e, struct ending *ret)
{
    for (enum budget_of k = 0; k < BUDGET_KINDS; k++)
        if (e->t.ended[k]) {
            *ret = (struct ending){ budget_name(k), "the budget is used up" };
            return true;
        }
    return false;
}

static bool window_over(const struct episode *e, struct ending *ret)
{
    bool full =
        context_share(&e->t, &e->budget) + (double)ROOM_SPARE / (double)budget_window(&e->budget) >=
        1.0;
    if (e->config->training && (full || e->t.overflows > 0))
        *ret = (struct ending){ "window", "the conversation fills the window" };
    else if (!e->config->training && context_need(&e->t, &e->budget) == CONTEXT_HOPELESS)
        *ret = (struct ending){ "window", "shortening the conversation does not help any more" };
    return ret->status != NULL;
}

static bool answers_over(const struct episode *e, struct ending *ret)
{
    const struct transcript *t = &e->t;
    int refusals = e->spec.has_fallback ? 3 : 2;
    if (t->unusable >= FORMAT_ERRORS_MAX)
        *ret = (struct ending){ "format", answer_name(t->last) };
    else if (t->refusals >= refusals)
        *ret = (struct ending){ "refused", "refused again after a fresh start" };
    else if (t->contents >= 2)
        *ret = (struct ending){ "submitted", "the model had nothing more to try" };
    else if (t->last == ANSWER_FAILED)
        *ret = (struct ending){ "endpoint", t->fault ? t->fault : "the endpoint failed" };
    else if (t->loop_nudges > 0 && !t->nudged && loop_find(t->action, t->n_actions) == LOOP_FOUND)
        *ret = (struct ending){ "loop", "the same calls over and over" };
    return ret->status != NULL;
}

static bool is_over(const struct episode *e, struct ending *ret)
{
    if (e->t.submitted)
        *ret = (struct ending){ "submitted", "the model called submit" };
    else if (target_met(e))
        *ret = (struct ending){ "target", "the gate is beaten" };
    else if (e->stop)
        *ret = (struct ending){ "stopped", "by the person" };
    return ret->status != NULL || answers_over(e, ret) || budget_over(e, ret) ||
           window_over(e, ret);
}

enum err_code episode_end(struct episode *e, const char *status, const char *reason,
                          struct err *err)
{
    json_t *best = json_null();
    if (e->t.best != NULL)
        best = json_pack("{s:O, s:O}", "candidate", json_object_get(e->t.best, "candidate"),
                         "verdict", json_object_get(e->t.best, "verdict"));
    json_t *body =
        json_pack("{s:s, s:o, s:o, s:o}", "status", status, "reason", text_json(str_from(reason)),
                  "best", best, "totals", totals_json(&e->t.totals));
    if (episode_put(e, "run_end", body, err) != OK)
        return err->code;
    episode_become(e, EPISODE_ENDED);
    return log_sync(&e->log, err);
}

static enum err_code finish(struct episode *e, bool *ret_done, struct err *err)
{
    struct ending end = { 0 };
    *ret_done = is_over(e, &end);
    if (*ret_done && strcmp(end.status, "window") == 0 && !e->t.window_ended)
        return episode_put(e, "limit",
                           json_pack("{s:s, s:I, s:I, s:b}", "what", "window", "at",
                                     (json_int_t)transcript_tokens(&e->t), "of",
                                     (json_int_t)budget_window(&e->budget), "ended", 1),
                           err);
    return *ret_done ? episode_end(e, end.status, end.reason, err) : OK;
}

/* ---- budgets ---- */

static enum err_code limits(struct episode *e, bool *ret_done, struct err *err)
{
    struct totals now = episode_totals(e);
    for (enum budget_of k = 0; k < BUDGET_KINDS; k++) {
        double limit = budget_limit(&e->budget, k), used = budget_used(&now, k);
        bool over = used >= limit, near = used >= BUDGET_WARN * limit;
        if (limit <= 0 || (over ? e->t.ended[k] : !near || e->t.warned[k]))
            continue;
        *ret_done = true;
        return episode_put(e, "limit",
                           json_pack("{s:s, s:f, s:f, s:b}", "what", budget_name(k), "at", used,
                                     "of", limit, "ended", over),
                           err);
    }
    return OK;
}

/* ---- what the model is told ---- */

static enum err_code nudge(struct episode *e, bool *ret_done, struct err *err)
{
    const struct transcript *t = &e->t;
    const char *text = answer_nudge(t->last), *about = answer_name(t->last);
    if (t->nudged || t->next_turn == 0)
        return OK;
    if (t->last == ANSWER_CALLS && loop_find(t->action, t->n_actions) != LOOP_NONE) {
        text = loop_nudge;
        about = "loop";
    }
    *ret_done = text != NULL;
    return *ret_done ? message_put(e, "nudge", about, str_from(text), err) : OK;
}

/* The file goes once its text is an event; should we die in between, the text is known again. */
static enum err_code steer(struct episode *e, bool *ret_done, struct err *err)
{
    own_arena tmp = { 0 };
    struct str text;
    const struct said *last = e->t.n > 0 ? &e->t.said[e->t.n - 1] : NULL;
    if (!path_exists(e->steer_path))
        return OK;
    if (file_read(&tmp, e->steer_path, STEER_MAX, &text, err) != OK)
        return err->code;
    text = str_trim(text);
    bool known = last != NULL && last->by == SAID_STEER && last->m.n_parts == 1 &&
                 str_eq(last->parts[0].text, text);
    if (!known && text.len > 0 && message_put(e, "steer", NULL, text, err) != OK)
        return err->code;
    *ret_done = true;
    return unlink(e->steer_path) == 0 ? OK : err_sys(err, "remove '%s'", e->steer_path);
}

static const char lost[] =
    "The program was started anew. Commands in the background have ended, and what lay outside the "
    "workspace (/tmp, /tool-output) is gone.";

static enum err_code remind(struct episode *e, bool *ret_done, struct err *err)
{
    own_arena tmp = { 0 };
    const struct transcript *t = &e->t;
    if (t->behind_lost) {
        *ret_done = true;
        return message_put(e, "reminder", "resumed", str_from(lost), err);
    }
    bool old = t->todo_turn >= 0 && t->next_turn - t->todo_turn >= TODO_TURNS;
    if (!old && !t->reminder_due)
        return OK;
    struct str text = tools_reminder(e->tools, &tmp);
    *ret_done = text.len > 0;
    return *ret_done ? message_put(e, "reminder", NULL, text, err) : OK;
}

/* ---- what the model sees ---- */

static enum err_code request_put(struct episode *e, bool summary, struct err *err)
{
    char prefix[SHA256_HEX];
    int64_t tokens = transcript_tokens(&e->t);
    int64_t room = budget_window(&e->budget) - tokens - ROOM_SPARE, max = e->sampling.max_tokens;
    if (summary)
        max = CONTEXT_SUMMARY_TOKENS;
    else if (e->config->sampling.max_tokens > 0)
        max = e->config->sampling.max_tokens;
    else
        max = AGENT_MAX_TOKENS;
    max = max < room ? max : room;
    e->sampling.max_tokens = max > ROOM_MIN ? max : ROOM_MIN;
    transcript_prefix(&e->t, prefix);
    json_t *body = json_pack("{s:I, s:I, s:s, s:I, s:I}", "turn", (json_int_t)e->t.next_turn,
                             "messages", (json_int_t)e->t.n_view, "prefix", prefix, "tokens",
                             (json_int_t)tokens, "max_tokens", (json_int_t)e->sampling.max_tokens);
    if (body != NULL && summary)
        json_object_set_new(body, "purpose", json_string("summary"));
    if (body != NULL && e->t.refusals >= 2)
        json_object_set_new(body, "fallback", json_true());
    if (episode_put(e, "request", body, err) != OK)
        return err->code;
    episode_become(e, EPISODE_ASK);
    return OK;
}

static enum err_code drop_put(struct episode *e, const char *kind, int64_t keep, struct err *err)
{
    own_arena tmp = { 0 };
    if (episode_put(e, "context", context_drop(&e->t, kind, keep, context_table(&tmp, &e->t)),
                    err) != OK)
        return err->code;
    transcript_compact(&e->t);
    return OK;
}

/* After a refusal: the task alone, once. */
static enum err_code refresh(struct episode *e, bool *ret_done, struct err *err)
{
    if (e->t.last != ANSWER_REFUSED || e->t.refused_reset || e->config->training)
        return OK;
    *ret_done = true;
    return drop_put(e, "reset", 0, err);
}

static enum err_code fit(struct episode *e, bool *ret_done, struct err *err)
{
    if (e->config->training)
        return OK;
    enum context_need need = context_need(&e->t, &e->budget);
    *ret_done = need != CONTEXT_FITS;
    json_t *mask = need == CONTEXT_MASK ? context_mask(&e->t) : NULL;
    if (mask != NULL) {
        if (episode_put(e, "context", mask, err) != OK)
            return err->code;
        transcript_compact(&e->t);
        return OK;
    }
    bool old = e->t.next_turn > CONTEXT_RECENT; /* there is something to sum up */
    if ((need == CONTEXT_MASK || need == CONTEXT_SUMMARY) && old && e->t.overflows == 0)
        return request_put(e, true, err);
    return need != CONTEXT_FITS ? drop_put(e, "reset", CONTEXT_RESET_KEEP, err) : OK;
}

enum err_code episode_next(struct episode *e, struct err *err)
{
    static enum err_code (*const rules[])(struct episode * e, bool *ret_done,
                                          struct err *err) = { begin, finish,  limits, nudge,
                                                               steer, refresh, fit,    remind };
    bool done = false;
    for (size_t i = 0; i < COUNT(rules); i++) {
        enum err_code code = rules[i](e, &done, err);
        if (code != OK || done)
            return code;
    }
    return request_put(e, false, err);
}
