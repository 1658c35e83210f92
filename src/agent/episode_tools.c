/* The calls of an answer, one after the other; whatever is wrong with one is its result. */
#include "agent/context.h"
#include "agent/episode_int.h"
#include "agent/parts.h"
#include "core/json.h"
#include "sys/clock.h"

#define ARGS_MAX ((size_t)8 << 20)

static const struct chat_part *call_next(const struct episode *e)
{
    return transcript_call(&e->t, e->t.flight.index, e->t.flight.n_results);
}

/* The name of a row, where the model's is another word for one. */
static struct str name_of(const struct episode *e, const struct chat_part *call)
{
    const struct chat_tool *tool = chat_tool_find(e->tool, e->n_tools, call->name);
    return tool ? tool->name : call->name;
}

static size_t results_bytes(const struct transcript *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->flight.n_results; i++)
        n += t->flight.result[i].text.len;
    return n;
}

/* The last result of a turn says where the attempt stands, when it gets tight. */
static struct str with_trailer(struct episode *e, struct str text)
{
    const struct transcript *t = &e->t;
    struct totals now = episode_totals(e);
    if (transcript_call(t, t->flight.index, t->flight.n_results + 1) != NULL)
        return text;
    struct str trailer =
        context_trailer(&e->turn_arena, t, &e->budget, &now, results_bytes(t) + text.len);
    struct buf b = { .arena = &e->turn_arena, .max = text.len + trailer.len };
    if (trailer.len == 0)
        return text;
    buf_add(&b, text);
    buf_add(&b, trailer);
    return (struct str){ b.ptr, b.len };
}

static enum err_code tool_end_put(struct episode *e, const struct tool_result *r, bool skipped,
                                  struct err *err)
{
    const struct chat_part *call = call_next(e);
    struct str text = skipped ? r->text : with_trailer(e, r->text);
    json_t *body =
        json_pack("{s:I, s:o, s:o, s:b, s:I, s:o, s:b}", "turn", (json_int_t)e->t.flight.turn, "id",
                  text_json(call->id), "name", text_json(name_of(e, call)), "failed", r->failed,
                  "ms", (json_int_t)(skipped ? 0 : clock_ms() - e->since_ms), "text",
                  text_json(text), "skipped", skipped);
    return episode_put(e, "tool_end", body, err);
}

static enum err_code skip(struct episode *e, const char *why, struct err *err)
{
    struct tool_result r = { str_from(why), true };
    return tool_end_put(e, &r, true, err);
}

/* Arguments that are none are told, not run. */
static enum err_code call_begin(struct episode *e, const struct chat_part *call, struct err *err)
{
    char hash[SHA256_HEX];
    struct err why = { 0 };
    struct str args = str_trim(call->args), name = name_of(e, call);
    sha256_text(call->args, hash);
    json_t *body = json_pack("{s:I, s:o, s:o, s:s}", "turn", (json_int_t)e->t.flight.turn, "id",
                             text_json(call->id), "name", text_json(name), "args", hash);
    if (episode_put(e, "tool_start", body, err) != OK)
        return err->code;
    e->since_ms = clock_ms();
    if (json_parse(args.len == 0 ? S("{}") : args, ARGS_MAX, &e->args, &why) != OK) {
        err_within(&why, "the arguments are no JSON");
        struct tool_result r = { str_from(why.text), true };
        return tool_end_put(e, &r, false, err);
    }
    const struct tool *row = tools_find(e->tools, name);
    e->dirty |= row != NULL && !row->reads;
    e->call = tool_call_begin(e->tools, &e->turn_arena, name, e->args);
    return OK;
}

static enum err_code call_settle(struct episode *e, struct err *err)
{
    struct tool_result r = tool_call_end(e->call);
    e->call = NULL;
    json_decref(e->args);
    e->args = NULL;
    return tool_end_put(e, &r, false, err);
}

/* One thing: a call begins, moves, or ends. */
enum err_code episode_tools_step(struct episode *e, struct err *err)
{
    if (e->call != NULL) {
        if (!tool_call_done(e->call) && !e->stop)
            tool_call_step(e->call);
        return tool_call_done(e->call) || e->stop ? call_settle(e, err) : OK;
    }
    const struct chat_part *call = call_next(e);
    if (call == NULL) {
        episode_become(e, EPISODE_TURN);
        return OK;
    }
    if (e->stop)
        return skip(e, "Not carried out: the person stopped the program.", err);
    if (e->t.submitted)
        return skip(e, "Not carried out: the attempt has ended.", err);
    return call_begin(e, call, err);
}

void episode_tools_drop(struct episode *e)
{
    if (e->call != NULL)
        tool_call_end(e->call);
    e->call = NULL;
    json_decref(e->args);
    e->args = NULL;
}
