/* What the pieces amount to: the end, the calls that may run, the notes. */
#include <ctype.h>

#include "core/own.h"
#include "llm/assembly_int.h"
#include "llm/repair.h"
#include "llm/wire.h"

/* Bytes a token of source code has, about; 0.6: below that a prompt was cut, not counted otherwise.
 */
#define TOKEN_BYTES 3.2
#define PROMPT_CUT_SHARE 0.6
#define PROMPT_CUT_FROM 2000 /* tokens; smaller estimates are too coarse to accuse anybody */

static struct str joined(struct assembly *as, const struct buf *b)
{
    struct str s = { b->ptr ? b->ptr : "", b->len };
    return as->notes & NOTE_MENDED ? wire_join(as->arena, s) : s;
}

/* ---- the end ---- */

struct stop {
    const char *text;
    enum reply_end end;
    enum refused_by by;
};

static const struct stop stops[] = {
    { "stop", REPLY_STOP, 0 },
    { "tool_calls", REPLY_STOP, 0 },
    { "function_call", REPLY_STOP, 0 },
    { "end_turn", REPLY_STOP, 0 },
    { "tool_use", REPLY_STOP, 0 },
    { "stop_sequence", REPLY_STOP, 0 },
    { "eos", REPLY_STOP, 0 },
    { "length", REPLY_LENGTH, 0 },
    { "max_tokens", REPLY_LENGTH, 0 },
    { "model_context_window_exceeded", REPLY_CONTEXT, 0 },
    { "pause_turn", REPLY_PAUSED, 0 },
    { "refusal", REPLY_REFUSED, REFUSED_BY_STOP },
    { "content_filter", REPLY_REFUSED, REFUSED_BY_FILTER },
    { "sensitive", REPLY_REFUSED, REFUSED_BY_FILTER },
    { "safety", REPLY_REFUSED, REFUSED_BY_FILTER },
    { "error", REPLY_FAILED, 0 },
    { "abort", REPLY_FAILED, 0 },
    { "insufficient_system_resource", REPLY_FAILED, 0 },
};

static struct stop stop_of(struct assembly *as)
{
    for (size_t i = 0; i < COUNT(stops); i++)
        if (wire_same(as->stop_text, stops[i].text))
            return stops[i];
    as->notes |= NOTE_UNKNOWN_STOP;
    return (struct stop){ NULL, REPLY_STOP, 0 };
}

static bool call_is_open(const struct assembly *as)
{
    for (size_t i = 0; i < as->n_slots; i++)
        if (as->slots[i].kind == CHAT_CALL && as->slots[i].text.len > 0 && !as->slots[i].scan.whole)
            return true;
    return false;
}

static void end_find(struct assembly *as, struct reply *r)
{
    struct stop stop = { NULL, REPLY_STOP, 0 };
    if (as->finished)
        stop = stop_of(as);
    if (as->fault.kind == FAULT_NONE && !as->done)
        as->notes |= NOTE_NO_DONE;
    if (as->fault.kind == FAULT_NONE && as->done && !as->finished)
        as->notes |= NOTE_NO_FINISH;
    if (as->fault.kind == FAULT_NONE && !as->finished &&
        (!as->done || as->mode == MODE_BODY || call_is_open(as)))
        assembly_fail(as, fault_ours(as->arena, FAULT_CUT, "the answer ended before its end"));
    if (as->fault.kind == FAULT_NONE && stop.end == REPLY_FAILED)
        assembly_fail(as, fault_ours(as->arena, FAULT_SERVER, "the server ended the answer: %.*s",
                                     STR_FMT(as->stop_text)));
    r->end = stop.end;
    r->refused_by = stop.by;
    if (as->fault.kind == FAULT_CUT)
        r->end = REPLY_CUT;
    else if (as->fault.kind == FAULT_REFUSED) {
        r->end = REPLY_REFUSED;
        r->refused_by = REFUSED_BY_FILTER;
    } else if (as->fault.kind != FAULT_NONE)
        r->end = REPLY_FAILED;
}

/* ---- calls ---- */

static struct str id_mint(struct assembly *as, size_t n)
{
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    char id[30] = "call_";
    uint64_t x = (as->spec.id_seed + 1) * 0xd1342543de82ef95u + (n << 32);
    for (size_t i = 5; i < 29; i++) { /* splitmix64 */
        x += 0x9e3779b97f4a7c15u;
        uint64_t z = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        id[i] = digits[(z ^ z >> 31) % 62];
    }
    return str_copy(as->arena, (struct str){ id, 29 });
}

static struct str name_clean(struct assembly *as, struct str name)
{
    size_t n = 0;
    name = str_trim(name);
    while (n < name.len && (isalnum((unsigned char)name.ptr[n]) || strchr("_.-", name.ptr[n])) &&
           name.ptr[n] != '\0')
        n++;
    if (n < name.len)
        as->notes |= NOTE_NAME_CUT;
    return (struct str){ name.ptr, n };
}

static void args_read(struct assembly *as, struct reply_call *c, struct str text)
{
    const struct chat_tool *tool = chat_tool_find(as->spec.tools, as->spec.n_tools, c->name);
    struct err err = { 0 };
    bool mended = false;
    own_json schema = tool ? wire_json(tool->schema, &mended) : NULL;
    own_json args = NULL;
    c->args = text;
    if (repair_args(text, schema, SIZE_MAX, &args, &c->repairs, &err) != OK) {
        c->broken = true;
        c->why = str_copy(as->arena, str_from(err.text));
        as->notes |= NOTE_ARGS_BROKEN;
    } else if (c->repairs != 0) {
        c->args = json_text(as->arena, args);
        as->notes |= c->repairs == REPAIR_EMPTY ? 0 : (unsigned)NOTE_ARGS_REPAIRED;
    }
}

static void call_finish(struct assembly *as, const struct slot *s, size_t n, struct reply_call *c)
{
    *c = (struct reply_call){ .id = s->id, .name = name_clean(as, joined(as, &s->name)) };
    c->seal = (struct str){ s->seal.ptr, s->seal.len };
    if (c->id.len == 0) {
        c->id = id_mint(as, n);
        as->notes |= NOTE_MINTED_ID;
    }
    args_read(as, c, joined(as, &s->text));
}

static void calls_finish(struct assembly *as, struct reply *r)
{
    size_t n = 0;
    for (size_t i = 0; i < as->n_slots; i++)
        n += as->slots[i].kind == CHAT_CALL;
    bool drop = r->end != REPLY_STOP && r->end != REPLY_PAUSED;
    if (drop && n > 0)
        as->notes |= NOTE_CALLS_DROPPED;
    n = drop ? 0 : n;
    r->calls = arena_new(as->arena, struct reply_call, n);
    for (size_t i = 0; n > 0 && i < as->n_slots; i++)
        if (as->slots[i].kind == CHAT_CALL) {
            call_finish(as, &as->slots[i], r->n_calls, &r->calls[r->n_calls]);
            r->n_calls++;
        }
}

/* ---- text ---- */

/* Models whose server does not split their thinking off: "<think>...</think>answer". */
static void think_split(struct assembly *as, struct str text, struct reply *r)
{
    struct str open = S("<think>"), body = str_trim(text);
    bool tagged = str_starts(body, open);
    r->text = text;
    if (as->spec.dialect != DIALECT_OPENAI || r->reasoning.len > 0 ||
        (!tagged && !as->spec.think_open))
        return;
    body = tagged ? str_drop(body, open.len) : body;
    size_t at = wire_find(body, "</think>");
    if (!tagged && at == body.len)
        return;
    as->notes |= NOTE_THINK_TAGS;
    as->reasoning_key = "<think>";
    r->reasoning = str_trim((struct str){ body.ptr, at });
    r->text = at < body.len ? str_trim(str_drop(body, at + 8)) : (struct str){ "", 0 };
}

static struct str blocks_joined(struct assembly *as, enum chat_kind kind)
{
    struct buf all = assembly_buf(as);
    for (size_t i = 0; i < as->n_slots; i++)
        if (as->slots[i].kind == kind)
            buf_add(&all, joined(as, &as->slots[i].text));
    return (struct str){ all.ptr ? all.ptr : "", all.len };
}

static void texts_finish(struct assembly *as, struct reply *r)
{
    static const char *const markup[] = { "<tool_call>",      "<function=",  "<invoke name=",
                                          "[TOOL_CALLS]",     "<|tool_call", "DSML",
                                          "<\xef\xbd\x9ctool" }; /* a full-width bar */
    r->refusal = joined(as, &as->refusal);
    if (as->spec.dialect == DIALECT_ANTHROPIC) {
        r->reasoning = blocks_joined(as, CHAT_THINKING);
        r->text = blocks_joined(as, CHAT_TEXT);
    } else {
        r->reasoning = joined(as, &as->reasoning);
        think_split(as, joined(as, &as->text), r);
    }
    for (size_t i = 0; r->n_calls == 0 && i < COUNT(markup); i++)
        if (wire_holds(r->text, markup[i]))
            as->notes |= NOTE_MARKUP;
}

/* ---- the message ---- */

static struct chat_part part_of_call(const struct reply_call *c)
{
    return (struct chat_part){
        .kind = CHAT_CALL, .id = c->id, .name = c->name, .args = c->args, .seal = c->seal
    };
}

static void message_openai(struct assembly *as, struct reply *r)
{
    struct chat_part *parts = arena_new(as->arena, struct chat_part, r->n_calls + 2);
    size_t n = 0;
    if (r->reasoning.len > 0)
        parts[n++] = (struct chat_part){ .kind = CHAT_THINKING, .text = r->reasoning };
    if (r->text.len > 0)
        parts[n++] = (struct chat_part){ .kind = CHAT_TEXT, .text = r->text };
    for (size_t i = 0; i < r->n_calls; i++)
        parts[n++] = part_of_call(&r->calls[i]);
    r->message.parts = parts;
    r->message.n_parts = n;
    if (as->details.len > 0) {
        struct buf extra = assembly_buf(as);
        buf_addz(&extra, "{\"reasoning_details\":[");
        buf_add(&extra, (struct str){ as->details.ptr, as->details.len });
        buf_addz(&extra, "]}");
        r->message.extra = (struct str){ extra.ptr, extra.len };
    }
}

static void message_anthropic(struct assembly *as, struct reply *r)
{
    struct chat_part *parts = arena_new(as->arena, struct chat_part, as->n_slots);
    size_t n = 0, n_call = 0;
    for (size_t i = 0; i < as->n_slots; i++) {
        const struct slot *s = &as->slots[i];
        if (s->kind == CHAT_CALL) {
            if (n_call < r->n_calls)
                parts[n++] = part_of_call(&r->calls[n_call++]);
        } else if (s->kind != CHAT_RESULT && (s->text.len > 0 || s->seal.len > 0)) {
            parts[n++] = (struct chat_part){ .kind = s->kind,
                                             .text = joined(as, &s->text),
                                             .seal = { s->seal.ptr, s->seal.len } };
        }
    }
    r->message.parts = parts;
    r->message.n_parts = n;
}

/* ---- usage ---- */

static void usage_finish(struct assembly *as, struct reply *r)
{
    double sent = (double)as->spec.prompt_bytes / TOKEN_BYTES;
    size_t bytes = r->text.len + r->reasoning.len;
    for (size_t i = 0; i < r->n_calls; i++)
        bytes += r->calls[i].name.len + r->calls[i].args.len;
    r->usage = as->usage;
    if (!as->has_usage) {
        as->notes |= NOTE_NO_USAGE;
        r->usage = (struct reply_usage){ .estimated = true,
                                         .input_total = (int64_t)sent,
                                         .output_total = (int64_t)((double)bytes / TOKEN_BYTES) };
    } else if (sent > PROMPT_CUT_FROM && as->usage.input_total > 0 &&
               (double)as->usage.input_total < sent * PROMPT_CUT_SHARE) {
        as->notes |= NOTE_PROMPT_CUT;
    }
}

static void notes_finish(struct assembly *as, struct reply *r)
{
    static const char *const of_calls[] = { "tool_calls", "tool_use", "function_call" };
    bool says_calls = false;
    for (size_t i = 0; i < COUNT(of_calls); i++)
        says_calls = says_calls || wire_same(as->stop_text, of_calls[i]);
    if (r->end == REPLY_STOP && r->n_calls > 0 && as->finished && !says_calls)
        as->notes |= NOTE_STOP_WITH_CALLS;
    if (r->end == REPLY_STOP && r->n_calls == 0 && says_calls)
        as->notes |= NOTE_CALLS_LOST;
    if (r->end == REPLY_STOP && r->n_calls == 0 && str_trim(r->text).len == 0)
        as->notes |= NOTE_EMPTY;
    r->notes = as->notes;
}

void assembly_finish(struct assembly *as, struct reply *ret)
{
    struct reply r = { .message = { .role = CHAT_ASSISTANT } };
    end_find(as, &r);
    if (r.end == REPLY_STOP && as->refusal.len > 0) {
        r.end = REPLY_REFUSED;
        r.refused_by = REFUSED_BY_FIELD;
    }
    calls_finish(as, &r);
    texts_finish(as, &r);
    if (r.end == REPLY_STOP && r.n_calls == 0 && reply_refuses(r.text)) {
        r.end = REPLY_REFUSED;
        r.refused_by = REFUSED_IN_WORDS;
    }
    if (as->spec.dialect == DIALECT_ANTHROPIC)
        message_anthropic(as, &r);
    else
        message_openai(as, &r);
    r.message.aborted = r.end == REPLY_CUT || r.end == REPLY_FAILED;
    r.tokens = as->tokens;
    r.model = as->model;
    r.stop_text = as->stop_text;
    r.fault = as->fault;
    r.reasoning_key = as->reasoning_key;
    r.n_keep_alive = as->sse.n_comments + as->n_pings;
    usage_finish(as, &r);
    notes_finish(as, &r);
    *ret = r;
}
