#include "llm/assembly.h"

#include <stdlib.h>

#include "core/own.h"
#include "llm/assembly_int.h"
#include "llm/wire.h"

#define HEAD_MAX 200

struct assembly *assembly_create(struct arena *a, const struct assembly_spec *spec)
{
    struct assembly *as = arena_new(a, struct assembly, 1);
    as->arena = a;
    as->spec = *spec;
    if (as->spec.bytes_max == 0)
        as->spec.bytes_max = ASSEMBLY_BYTES_MAX;
    sse_init(&as->sse, a, as->spec.bytes_max);
    as->head = (struct buf){ .arena = a, .max = HEAD_MAX };
    as->body = as->text = as->reasoning = as->refusal = as->details = assembly_buf(as);
    return as;
}

/* Nothing in an answer is longer than the answer; a mended byte may take four. */
struct buf assembly_buf(struct assembly *as)
{
    return (struct buf){ .arena = as->arena, .max = as->spec.bytes_max * 4 };
}

void assembly_fail(struct assembly *as, struct fault fault)
{
    if (as->fault.kind == FAULT_NONE)
        as->fault = fault;
}

void assembly_add(struct assembly *as, struct buf *b, struct str s)
{
    buf_add(b, s);
    if (b->full)
        assembly_fail(as,
                      fault_ours(as->arena, FAULT_LIMIT, "text of more than %zu bytes", b->max));
}

void assembly_error(struct assembly *as, const json_t *error)
{
    assembly_fail(as, fault_from_json(as->arena, error, 200));
}

void assembly_stop(struct assembly *as, struct str reason)
{
    if (reason.len == 0)
        return;
    as->finished = true;
    as->stop_text = wire_clean(as->arena, str_copy(as->arena, reason));
}

struct str json_text(struct arena *a, const json_t *j)
{
    own_mem char *z = json_dumps(j, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    return str_copy(a, str_from(z));
}

/* ---- slots ---- */

struct slot *slot_open(struct assembly *as, enum chat_kind kind)
{
    if (as->n_slots == ASSEMBLY_CALLS_MAX) {
        assembly_fail(as, fault_ours(as->arena, FAULT_LIMIT, "more than %d calls in one answer",
                                     ASSEMBLY_CALLS_MAX));
        return NULL;
    }
    if (as->n_slots == as->cap_slots) {
        size_t cap = as->cap_slots ? as->cap_slots * 2 : 8;
        struct slot *more = arena_new(as->arena, struct slot, cap);
        if (as->n_slots > 0)
            memcpy(more, as->slots, as->n_slots * sizeof *more);
        as->slots = more;
        as->cap_slots = cap;
    }
    struct slot *s = &as->slots[as->n_slots++];
    *s = (struct slot){ .kind = kind };
    s->name = s->text = s->seal = assembly_buf(as);
    return s;
}

void scan_take(struct scan *s, struct str bytes)
{
    for (size_t i = 0; i < bytes.len; i++) {
        char c = bytes.ptr[i];
        if (s->in_string) {
            bool ends = c == '"' && !s->escaped;
            s->escaped = c == '\\' && !s->escaped;
            s->in_string = !ends;
        } else if (c == '"') {
            s->in_string = true;
        } else if (c == '{' || c == '[') {
            s->depth++;
        } else if ((c == '}' || c == ']') && s->depth > 0) {
            s->whole = --s->depth == 0;
        }
    }
}

void slot_args(struct assembly *as, struct slot *s, const json_t *args)
{
    if (json_is_string(args)) {
        struct str piece = { json_string_value(args), json_string_length(args) };
        struct str held = { s->text.ptr, s->text.len };
        if (s->scan.whole && str_eq(piece, held)) {
            as->notes |= NOTE_DOUBLED;
            return;
        }
        assembly_add(as, &s->text, piece);
        scan_take(&s->scan, piece);
    } else if (json_is_object(args) || json_is_array(args)) {
        struct str text = json_text(as->arena, args);
        as->notes |= NOTE_ARGS_OBJECT;
        s->text.len = 0;
        s->scan = (struct scan){ 0 };
        assembly_add(as, &s->text, text);
        scan_take(&s->scan, text);
    }
}

/* ---- tokens ---- */

static void *grown(struct arena *a, const void *list, size_t n, size_t *cap, size_t size)
{
    *cap = *cap ? *cap * 2 : 256;
    void *more = arena_alloc(a, *cap, size);
    if (n > 0)
        memcpy(more, list, n * size);
    return more;
}

static bool tokens_full(struct assembly *as, size_t n)
{
    if (n < ASSEMBLY_TOKENS_MAX)
        return false;
    assembly_fail(as,
                  fault_ours(as->arena, FAULT_LIMIT, "more than %zu tokens", ASSEMBLY_TOKENS_MAX));
    return true;
}

void tokens_take(struct assembly *as, int32_t **list, size_t *n, size_t *cap, const json_t *ids)
{
    const json_t *id;
    size_t i;
    json_array_foreach(ids, i, id)
    {
        json_int_t v = json_integer_value(id);
        if (!json_is_integer(id) || v < 0 || v > INT32_MAX) {
            assembly_fail(as, fault_ours(as->arena, FAULT_GARBAGE, "a token id is not one"));
            return;
        }
        if (tokens_full(as, *n))
            return;
        if (*n == *cap)
            *list = grown(as->arena, *list, *n, cap, sizeof **list);
        (*list)[(*n)++] = (int32_t)v;
    }
}

void logprobs_take(struct assembly *as, const json_t *logprobs)
{
    static const char *const lists[] = { "reasoning_content", "content" };
    const json_t *one;
    size_t i;
    for (size_t l = 0; l < COUNT(lists); l++)
        json_array_foreach(json_object_get(logprobs, lists[l]), i, one)
        {
            struct reply_tokens *t = &as->tokens;
            if (tokens_full(as, t->n_logprob))
                return;
            if (t->n_logprob == as->cap_logprob)
                t->logprob = grown(as->arena, t->logprob, t->n_logprob, &as->cap_logprob,
                                   sizeof *t->logprob);
            t->logprob[t->n_logprob++] = json_number_value(json_object_get(one, "logprob"));
        }
}

/* ---- bytes ---- */

static void object_take(struct assembly *as, struct str event, const json_t *o)
{
    if (json_is_array(o)) /* Google wraps errors so */
        o = json_array_get(o, 0);
    if (!json_is_object(o))
        return; /* null, or a text that a proxy keeps the line open with */
    if (as->spec.dialect == DIALECT_ANTHROPIC)
        anthropic_object(as, event, o);
    else
        openai_object(as, o);
}

/* Proxies that forget the blank lines send one "event" with an object a line. */
static bool lines_take(struct assembly *as, struct sse_event e)
{
    struct str line;
    bool mended = false;
    if (memchr(e.data.ptr, '\n', e.data.len) == NULL)
        return false;
    while (str_cut(&e.data, '\n', &line)) {
        own_json o = str_trim(line).len > 0 ? wire_json(line, &mended) : NULL;
        if (str_eq(str_trim(line), S("[DONE]")))
            as->done = true;
        else if (o != NULL)
            object_take(as, e.name, o);
        else if (str_trim(line).len > 0)
            return false;
    }
    as->notes |= NOTE_JOINED_EVENTS | (mended ? (unsigned)NOTE_MENDED : 0);
    return true;
}

static void event_take(struct assembly *as, struct sse_event e, bool last)
{
    bool mended = false;
    struct str data = str_trim(e.data);
    if (data.len == 0 || as->done || as->fault.kind != FAULT_NONE)
        return;
    as->n_events++;
    if (str_eq(data, S("[DONE]"))) {
        as->done = true;
        return;
    }
    own_json o = wire_json(data, &mended);
    if (o != NULL) {
        as->notes |= mended ? (unsigned)NOTE_MENDED : 0;
        if (str_eq(e.name, S("error")) && json_object_get(o, "error") == NULL)
            assembly_error(as, o);
        else
            object_take(as, e.name, o);
    } else if (!lines_take(as, e)) {
        if (str_eq(e.name, S("error")))
            assembly_fail(as, fault_from_http(as->arena,
                                              &(struct fault_http){ .status = 500, .body = data }));
        else if (last)
            as->notes |= NOTE_CUT_EVENT;
        else
            assembly_fail(as,
                          fault_ours(as->arena, FAULT_GARBAGE, "an event is not JSON: %.*s",
                                     (int)(data.len < HEAD_MAX ? data.len : HEAD_MAX), data.ptr));
    }
}

static void events_feed(struct assembly *as, struct str bytes)
{
    struct sse_event e;
    enum sse_got got = SSE_EVENT;
    while (as->fault.kind == FAULT_NONE && !as->done &&
           (got = sse_feed(&as->sse, &bytes, &e)) == SSE_EVENT)
        event_take(as, e, false);
    if (got == SSE_TOO_LONG)
        assembly_fail(as, fault_ours(as->arena, FAULT_LIMIT, "an event of more than %zu bytes",
                                     as->spec.bytes_max));
}

/* What the first byte says that is neither blank nor a byte-order mark. */
static void mode_find(struct assembly *as, struct str *bytes)
{
    while (bytes->len > 0 && as->mode == MODE_UNKNOWN) {
        unsigned char c = (unsigned char)bytes->ptr[0];
        if (c == '{' || c == '[')
            as->mode = MODE_BODY;
        else if (c > ' ' && c != 0xef && c != 0xbb && c != 0xbf)
            as->mode = MODE_EVENTS;
        else
            *bytes = str_drop(*bytes, 1);
    }
}

bool assembly_feed(struct assembly *as, struct str bytes)
{
    if (as->done || as->fault.kind != FAULT_NONE)
        return false;
    as->n_bytes += bytes.len;
    if (as->n_bytes > as->spec.bytes_max) {
        assembly_fail(as, fault_ours(as->arena, FAULT_LIMIT, "an answer of more than %zu bytes",
                                     as->spec.bytes_max));
        return false;
    }
    if (as->head.len < HEAD_MAX) {
        size_t room = HEAD_MAX - as->head.len;
        buf_add(&as->head, (struct str){ bytes.ptr, bytes.len < room ? bytes.len : room });
    }
    mode_find(as, &bytes);
    if (as->mode == MODE_BODY)
        assembly_add(as, &as->body, bytes);
    else if (as->mode == MODE_EVENTS)
        events_feed(as, bytes);
    return !as->done && as->fault.kind == FAULT_NONE;
}

bool assembly_done(const struct assembly *as)
{
    return as->done && as->fault.kind == FAULT_NONE;
}

struct str assembly_text(const struct assembly *as)
{
    if (as->spec.dialect == DIALECT_OPENAI)
        return (struct str){ as->text.ptr, as->text.len };
    for (size_t i = as->n_slots; i-- > 0;)
        if (as->slots[i].kind == CHAT_TEXT)
            return (struct str){ as->slots[i].text.ptr, as->slots[i].text.len };
    return (struct str){ 0 };
}

static void body_end(struct assembly *as)
{
    bool mended = false;
    own_json o = wire_json((struct str){ as->body.ptr, as->body.len }, &mended);
    if (o == NULL) {
        assembly_fail(as, fault_ours(as->arena, FAULT_CUT, "the JSON body is not whole"));
        return;
    }
    as->notes |=
        (mended ? (unsigned)NOTE_MENDED : 0) | (as->spec.streamed ? (unsigned)NOTE_BODY : 0);
    object_take(as, (struct str){ 0 }, o);
    as->done = true;
}

void assembly_end(struct assembly *as, struct reply *ret)
{
    struct sse_event e;
    if (as->mode == MODE_BODY)
        body_end(as);
    else if (as->mode == MODE_EVENTS && !as->done && sse_end(&as->sse, &e) == SSE_EVENT)
        event_take(as, e, true);
    bool heard = as->n_events > 0 || as->mode == MODE_BODY || as->sse.n_comments > 0;
    if (!heard && as->n_bytes > 0)
        assembly_fail(as, fault_ours(as->arena, FAULT_GARBAGE,
                                     "the answer is neither events nor "
                                     "JSON: %.*s",
                                     (int)as->head.len, as->head.ptr));
    assembly_finish(as, ret);
}
