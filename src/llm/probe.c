#include "llm/probe.h"

#include "core/own.h"
#include "llm/wire.h"

#define MAX_TOKENS 2048 /* room for thinking before an answer of one word */
#define THINKING_TOKENS 1024
#define TOO_MANY_TOKENS 100000000 /* no model writes so many */
#define MARKER_TOKENS 20000       /* of a prompt that shows whether its start is kept */
#define MARKER_SHARE 0.6          /* of a known window; other tokenizers count otherwise */
#define MARKER_TOKEN_BYTES 3
#define MARKER "amber-falcon"
#define TEXT_MAX ((size_t)1 << 20)
#define QUOTE_MAX 60

#define PARSER_HINT                                                                            \
    "start the server with its parser for this model's calls: vLLM --enable-auto-tool-choice " \
    "--tool-call-parser NAME, SGLang --tool-call-parser NAME, llama.cpp --jinja"

void probing_init(struct probing *p, struct arena *a, enum dialect dialect, struct str model)
{
    *p = (struct probing){ .arena = a,
                           .dialect = dialect,
                           .model = str_z(a, model),
                           .usable = true,
                           .learnt = { .arena = a, .max = TEXT_MAX } };
}

/* ---- rows ---- */

static void row(struct probing *p, struct probe_row r)
{
    if (r.needed && !r.good)
        p->usable = false;
    if (p->n_rows < PROBE_ROWS_MAX)
        p->rows[p->n_rows++] = r;
}

static void row_ok(struct probing *p, const char *what, const char *found)
{
    row(p, (struct probe_row){ .what = what, .good = true, .found = found, .mend = "" });
}

static void row_no(struct probing *p, const char *what, const char *found, const char *mend)
{
    row(p, (struct probe_row){ .what = what, .found = found, .mend = mend });
}

static void row_lack(struct probing *p, const char *what, const char *found, const char *mend)
{
    row(p, (struct probe_row){ .what = what, .needed = true, .found = found, .mend = mend });
}

static const char *quoted(struct probing *p, struct str s)
{
    s = str_trim(s);
    bool cut = s.len > QUOTE_MAX;
    char *z = (char *)(uintptr_t)arena_fmt(p->arena, "\"%.*s%s\"", cut ? QUOTE_MAX : (int)s.len,
                                           s.ptr, cut ? "..." : "");
    for (char *c = z; *c != '\0'; c++)
        *c = *c == '\n' || *c == '\t' ? ' ' : *c;
    str_plain(z);
    struct str clean = wire_clean(p->arena, str_from(z));
    return str_z(p->arena, clean);
}

static const char *mend_of(const struct fault *f)
{
    switch (f->kind) {
    case FAULT_TRANSPORT:
        return "is the server running, and is the address right?";
    case FAULT_AUTH:
        return "name the variable that holds the key: --key-env NAME, or its file: --key-file FILE";
    case FAULT_QUOTA:
        return "the account wants money, or another key";
    case FAULT_TLS:
        return "the server's certificate is not trusted: --ca-file FILE where it is your own";
    case FAULT_REDIRECT:
        return "give the address that it sends to, if that is where you want to go";
    case FAULT_TIMEOUT:
    case FAULT_OVERLOADED:
    case FAULT_RATE:
        return "the server is busy, or loads its model: try again later";
    case FAULT_NONE:
    case FAULT_CUT:
    case FAULT_SERVER:
    case FAULT_GARBAGE:
    case FAULT_CONTEXT:
    case FAULT_ROOM:
    case FAULT_PARAMETER:
    case FAULT_HISTORY:
    case FAULT_REQUEST:
    case FAULT_REFUSED:
    case FAULT_LIMIT:
    case FAULT_CANCELLED:
        break;
    }
    return f->status == 404 ? "is the model's name right, and the dialect? --model, --dialect"
                            : "see the server's own log";
}

static const char *fault_text(struct probing *p, const struct fault *f)
{
    return f->status > 0
               ? arena_fmt(p->arena, "%s (HTTP %d): %.*s", fault_name(f->kind), f->status,
                           STR_FMT(f->message))
               : arena_fmt(p->arena, "%s: %.*s", fault_name(f->kind), STR_FMT(f->message));
}

static void steps_take(struct probing *p, struct str changes)
{
    struct str line;
    while (str_cut(&changes, '\n', &line)) {
        bool there = false;
        for (size_t i = 0; i < p->n_steps; i++)
            there = there || str_eq(str_from(p->steps[i]), line);
        if (!there && p->n_steps < PROBE_STEPS_MAX)
            p->steps[p->n_steps++] = str_z(p->arena, line);
    }
}

/* ---- the list of models ---- */

static int64_t window_of(const json_t *m)
{
    static const char *const keys[] = { "max_model_len", "context_length", "context_window",
                                        "max_context_length", "max_input_tokens" };
    int64_t n = 0;
    for (size_t i = 0; i < COUNT(keys); i++)
        if (wire_count(m, keys[i], &n) && n > 0)
            return n;
    return wire_count(json_object_get(m, "meta"), "n_ctx", &n) ? n : 0;
}

static const json_t *model_find(const json_t *list, struct str name)
{
    const json_t *m;
    size_t i;
    json_array_foreach(list, i, m)
    {
        struct str id = wire_text(m, "id");
        if (str_eq(id, name) || (name.len == 0 && json_array_size(list) == 1))
            return m;
    }
    return NULL;
}

static const char *names_of(struct probing *p, const json_t *list)
{
    struct buf b = { .arena = p->arena, .max = TEXT_MAX };
    const json_t *m;
    size_t i;
    json_array_foreach(list, i, m)
    {
        struct str id = wire_text(m, "id");
        if (i < 8)
            buf_addf(&b, "%s%.*s", i > 0 ? ", " : "", STR_FMT(id));
    }
    if (json_array_size(list) > 8)
        buf_addf(&b, " and %zu more", json_array_size(list) - 8);
    return str_z(p->arena, (struct str){ b.ptr, b.len });
}

void probe_models(struct probing *p, const struct llm_outcome *o, bool *ret_other)
{
    bool mended = false;
    own_json j = wire_json(o->body, &mended);
    const json_t *list = json_object_get(j, "data"), *first = json_array_get(list, 0);
    bool anthropic = str_eq(wire_text(first, "type"), S("model")) &&
                     json_object_get(first, "display_name") != NULL;
    *ret_other = first != NULL && anthropic != (p->dialect == DIALECT_ANTHROPIC);
    if (o->fault.kind != FAULT_NONE || first == NULL) {
        const char *found = o->fault.kind != FAULT_NONE ? fault_text(p, &o->fault)
                                                        : "/v1/models is no list of models";
        bool known = p->model[0] != '\0' && o->fault.status > 0 && o->fault.kind != FAULT_AUTH;
        row(p, (struct probe_row){ .what = "models",
                                   .needed = !known,
                                   .found = found,
                                   .mend = o->fault.status == 404 ? "name the model: --model NAME"
                                                                  : mend_of(&o->fault) });
        return;
    }
    const json_t *m = model_find(list, str_from(p->model));
    if (m == NULL && p->model[0] == '\0') {
        row_lack(p, "models", names_of(p, list), "say which: --model NAME");
    } else if (m == NULL) {
        row_no(p, "models",
               arena_fmt(p->arena, "'%s' is not among %s", p->model, names_of(p, list)),
               "is the model's name right? --model NAME");
    } else {
        p->model = str_z(p->arena, wire_text(m, "id"));
        p->window = p->window > 0 ? p->window : window_of(m); /* a person's word comes first */
        row_ok(p, "models",
               arena_fmt(p->arena, "%s (%zu in the list)", p->model, json_array_size(list)));
    }
}

bool probe_wants_props(const struct probing *p)
{
    return p->window == 0 && p->dialect == DIALECT_OPENAI;
}

void probe_props(struct probing *p, const struct llm_outcome *o)
{
    bool mended = false;
    own_json j = wire_json(o->body, &mended);
    wire_count(json_object_get(j, "default_generation_settings"), "n_ctx", &p->window);
}

/* ---- what is asked ---- */

static const char schema[] = "{\"type\":\"object\",\"properties\":{\"word\":{\"type\":\"string\"}},"
                             "\"required\":[\"word\"]}";
static const struct chat_tool report = { .name = { "report", 6 },
                                         .description = { "Reports a word.", 15 },
                                         .schema = { schema, sizeof schema - 1 } };

bool probe_wanted(const struct probing *p, enum probe_id id, bool thorough)
{
    switch (id) {
    case PROBE_ANSWER:
        return true;
    case PROBE_RESULT:
    case PROBE_PARALLEL:
    case PROBE_TOKENS:
        return p->usable && p->called;
    case PROBE_WINDOW:
        return p->usable && p->window == 0;
    case PROBE_MARKER:
        return p->usable && thorough;
    case PROBE_STREAM:
    case PROBE_REASONING:
    case PROBE_CALL:
    case PROBES:
        break;
    }
    return p->usable;
}

static struct str marker_text(struct probing *p)
{
    struct buf b = { .arena = p->arena, .max = TEXT_MAX };
    double room = p->window > 0 ? (double)p->window * MARKER_SHARE : MARKER_TOKENS;
    size_t bytes = (size_t)(room < MARKER_TOKENS ? room : MARKER_TOKENS) * MARKER_TOKEN_BYTES;
    buf_addz(&b, "The marker is " MARKER ".\n");
    for (int i = 2; b.len < bytes; i++)
        buf_addf(&b, "Line %d holds nothing that matters.\n", i);
    buf_addz(&b, "Which marker stands in the first line? Answer with the marker alone.");
    return (struct str){ b.ptr, b.len };
}

static struct str question(struct probing *p, enum probe_id id)
{
    switch (id) {
    case PROBE_REASONING:
        return S("What is 17 * 23? Answer with the number alone.");
    case PROBE_CALL:
    case PROBE_RESULT:
    case PROBE_TOKENS:
        return S("Call the tool \"report\" with the word \"ping\".");
    case PROBE_PARALLEL:
        return S("In one answer, call the tool \"report\" twice, both with \"left\" and with "
                 "\"right\".");
    case PROBE_MARKER:
        return marker_text(p);
    case PROBE_ANSWER:
    case PROBE_STREAM:
    case PROBE_WINDOW:
    case PROBES:
        break;
    }
    return S("Answer with the single word: ready");
}

/* What the tool gave: one result a call. */
static struct chat_message results(struct probing *p)
{
    struct chat_part *parts = arena_new(p->arena, struct chat_part, p->said.n_parts);
    size_t n = 0;
    for (size_t i = 0; i < p->said.n_parts; i++)
        if (p->said.parts[i].kind == CHAT_CALL)
            parts[n++] = (struct chat_part){ .kind = CHAT_RESULT,
                                             .id = p->said.parts[i].id,
                                             .name = p->said.parts[i].name,
                                             .text = S("Reported. Answer with: ready") };
    return (struct chat_message){ .role = CHAT_USER, .parts = parts, .n_parts = n };
}

void probe_ask(struct probing *p, enum probe_id id, struct chat *ret_chat,
               struct chat_sampling *ret_sampling)
{
    struct chat_message *m = arena_new(p->arena, struct chat_message, 3);
    struct chat_part *part = arena_new(p->arena, struct chat_part, 1);
    bool tools =
        id == PROBE_CALL || id == PROBE_RESULT || id == PROBE_PARALLEL || id == PROBE_TOKENS;
    *part = (struct chat_part){ .kind = CHAT_TEXT, .text = question(p, id) };
    m[0] = (struct chat_message){ .role = CHAT_USER, .parts = part, .n_parts = 1 };
    *ret_chat = (struct chat){ .messages = m, .n_messages = 1 };
    if (id == PROBE_RESULT) {
        m[1] = p->said;
        m[2] = results(p);
        ret_chat->n_messages = 3;
    }
    if (tools) {
        ret_chat->tools = &report;
        ret_chat->n_tools = 1;
    }
    *ret_sampling = (struct chat_sampling){ .max_tokens = MAX_TOKENS };
    if (id == PROBE_ANSWER) {
        ret_sampling->has_temperature = ret_sampling->has_seed = true;
        ret_sampling->temperature = 0.7;
        ret_sampling->seed = 1;
    } else if (id == PROBE_REASONING) {
        ret_sampling->thinking = true;
        ret_sampling->thinking_tokens = THINKING_TOKENS;
        ret_sampling->effort = CHAT_EFFORT_MEDIUM;
    } else if (id == PROBE_TOKENS) {
        ret_sampling->logprobs = ret_sampling->token_ids = true;
    } else if (id == PROBE_WINDOW) {
        ret_sampling->max_tokens = TOO_MANY_TOKENS;
    }
}

/* ---- what it means ---- */

static void learn(struct probing *p, const char *setting)
{
    buf_addf(&p->learnt, "%s%s", p->learnt.len > 0 ? " " : "", setting);
}

static void answer_take(struct probing *p, const struct llm_outcome *o)
{
    const struct reply *r = &o->reply;
    if (str_trim(r->text).len == 0)
        row_lack(p, "answer", "an empty text",
                 r->end == REPLY_LENGTH
                     ? "2,048 tokens were not enough for one word: a model that "
                       "thinks without end"
                     : "is the model an instruct model, with its chat template?");
    else
        row_ok(p, "answer",
               arena_fmt(p->arena, "%s in %lld ms", quoted(p, r->text), (long long)o->wall_ms));
    if (wire_holds(r->text, "</think>") && !wire_holds(r->text, "<think>"))
        learn(p, "think_open=true");
}

static void stream_take(struct probing *p, const struct llm_outcome *o)
{
    const struct reply *r = &o->reply;
    bool body = (r->notes & NOTE_BODY) != 0;
    row(p, (struct probe_row){
               .what = "stream",
               .good = !body,
               .found = body ? "one body came where a stream was asked for"
                             : arena_fmt(p->arena, "first byte after %lld ms%s",
                                         (long long)o->first_byte_ms,
                                         r->notes & NOTE_NO_DONE ? "; its end is not said" : ""),
               .mend = "harmless; a proxy between may hold streams back" });
    if (r->notes & NOTE_NO_USAGE)
        row_no(p, "usage", "none in streams: tokens are estimated",
               "budgets and prices are estimates here; a newer server may send it");
    else
        row_ok(p, "usage",
               arena_fmt(p->arena, "in the stream: %lld in, %lld out",
                         (long long)r->usage.input_total, (long long)r->usage.output_total));
    row_ok(p, "connection", o->reused ? "kept between requests" : "a new one for each request");
}

static void reasoning_take(struct probing *p, const struct llm_outcome *o)
{
    const struct reply *r = &o->reply;
    if (r->reasoning.len > 0) {
        row_ok(p, "reasoning",
               arena_fmt(p->arena, "in '%s', %zu bytes", r->reasoning_key, r->reasoning.len));
        if (strcmp(r->reasoning_key, "reasoning") == 0)
            learn(p, "reasoning=reasoning");
    } else {
        row_ok(p, "reasoning",
               r->usage.reasoning > 0 ? arena_fmt(p->arena, "hidden: %lld tokens are counted",
                                                  (long long)r->usage.reasoning)
                                      : "none came");
    }
    row_ok(p, "keep-alive",
           r->n_keep_alive > 0 ? arena_fmt(p->arena, "%zu comments or pings", r->n_keep_alive)
                               : "none came: the time between bytes counts");
}

static bool is_word(const struct reply_call *c, const char *word)
{
    bool mended = false;
    own_json args = c->broken ? NULL : wire_json(c->args, &mended);
    return str_eq(c->name, report.name) && wire_same(wire_text(args, "word"), word);
}

static const char *id_kind(struct probing *p, const struct reply_call *c, unsigned notes)
{
    bool strange = false;
    if (notes & NOTE_MINTED_ID)
        return "none came; one is made here";
    for (size_t i = 0; i < c->id.len; i++)
        strange = strange || !(wire_holds(S("abcdefghijklmnopqrstuvwxyz0123456789_-"),
                                          str_z(p->arena, (struct str){ c->id.ptr + i, 1 })));
    return arena_fmt(p->arena, "%.*s (%zu characters%s)", STR_FMT(c->id), c->id.len,
                     strange ? ", some that other servers refuse" : "");
}

static const char *quirks(struct probing *p, unsigned notes)
{
    static const struct {
        unsigned note;
        const char *words;
    } rows[] = { { NOTE_NO_INDEX, "no index" },
                 { NOTE_SAME_INDEX, "all under one index" },
                 { NOTE_ARGS_OBJECT, "arguments as an object" },
                 { NOTE_ARGS_REPAIRED, "arguments were repaired" },
                 { NOTE_LEGACY_CALL, "as function_call" },
                 { NOTE_STOP_WITH_CALLS, "the reason says stop" },
                 { NOTE_NAME_CUT, "markup behind the name" },
                 { NOTE_DOUBLED, "arguments came twice" } };
    struct buf b = { .arena = p->arena, .max = TEXT_MAX };
    for (size_t i = 0; i < COUNT(rows); i++)
        if (notes & rows[i].note)
            buf_addf(&b, "; %s", rows[i].words);
    return str_z(p->arena, (struct str){ b.ptr, b.len });
}

static void call_take(struct probing *p, const struct llm_outcome *o)
{
    const struct reply *r = &o->reply;
    const char *found,
        *mend = "this model does not call tools well; another one, or another server";
    if (r->n_calls == 0) {
        bool lost = r->notes & (NOTE_MARKUP | NOTE_CALLS_LOST);
        found = lost ? arena_fmt(p->arena, "the call came as text: %s", quoted(p, r->text))
                     : arena_fmt(p->arena, "no call, but %s", quoted(p, r->text));
        row_lack(p, "call", found, lost ? PARSER_HINT : mend);
        return;
    }
    if (!is_word(&r->calls[0], "ping")) {
        found = arena_fmt(p->arena, "%.*s(%s), wanted report({\"word\": \"ping\"})",
                          STR_FMT(r->calls[0].name), quoted(p, r->calls[0].args));
        row_lack(p, "call", found, mend);
        return;
    }
    row_ok(p, "call", arena_fmt(p->arena, "right%s", quirks(p, r->notes)));
    row_ok(p, "id", id_kind(p, &r->calls[0], r->notes));
    p->called = true;
    struct chat_part *parts = arena_new(p->arena, struct chat_part, r->message.n_parts);
    p->said = (struct chat_message){ .role = CHAT_ASSISTANT,
                                     .parts = parts,
                                     .n_parts = r->message.n_parts,
                                     .extra = str_copy(p->arena, r->message.extra) };
    for (size_t i = 0; i < r->message.n_parts; i++) { /* the call's memory goes with the call */
        const struct chat_part *from = &r->message.parts[i];
        parts[i] = (struct chat_part){ .kind = from->kind,
                                       .text = str_copy(p->arena, from->text),
                                       .id = str_copy(p->arena, from->id),
                                       .name = str_copy(p->arena, from->name),
                                       .args = str_copy(p->arena, from->args),
                                       .seal = str_copy(p->arena, from->seal) };
    }
}

static void parallel_take(struct probing *p, const struct llm_outcome *o)
{
    const struct reply *r = &o->reply;
    bool both = r->n_calls >= 2 && is_word(&r->calls[0], "left") && is_word(&r->calls[1], "right");
    if (both)
        row_ok(p, "parallel",
               arena_fmt(p->arena, "two calls in one answer%s", quirks(p, r->notes)));
    else
        row_no(p, "parallel", arena_fmt(p->arena, "%zu of two calls in one answer", r->n_calls),
               "works without: more turns for the same work");
}

static void tokens_take_row(struct probing *p, const struct llm_outcome *o)
{
    const struct reply_tokens *t = &o->reply.tokens;
    bool ids = t->n_output > 0 && t->n_prompt > 0, logs = t->n_logprob > 0;
    const char *mend = "only training wants them: vLLM and SGLang give both";
    if (ids && logs)
        row_ok(p, "tokens",
               arena_fmt(p->arena,
                         "%zu ids, %zu log-probabilities, with tools and "
                         "stream",
                         t->n_output, t->n_logprob));
    else
        row_no(p, "tokens",
               ids    ? "ids, no log-probabilities with tools and stream"
               : logs ? "log-probabilities, no ids with tools and stream"
                      : "neither ids nor log-probabilities with tools and stream",
               mend);
    if (!ids)
        learn(p, "token_ids=false");
    if (!logs)
        learn(p, "logprobs=false");
}

static void marker_take(struct probing *p, const struct llm_outcome *o)
{
    const struct reply *r = &o->reply;
    bool found = wire_holds(r->text, MARKER), cut = (r->notes & NOTE_PROMPT_CUT) != 0;
    if (found && !cut)
        row_ok(p, "marker",
               arena_fmt(p->arena, "the first line of %lld tokens was read",
                         (long long)r->usage.input_total));
    else
        row_lack(
            p, "marker",
            cut ? arena_fmt(p->arena,
                            "the server threw the start of the prompt away: it "
                            "counts %lld tokens",
                            (long long)r->usage.input_total)
                : arena_fmt(p->arena, "the first line was not found again: %s", quoted(p, r->text)),
            "give the server a longer window (Ollama: OLLAMA_CONTEXT_LENGTH=65536), or say the "
            "true one: --window N");
}

static void window_row(struct probing *p)
{
    if (p->window > 0)
        row_ok(p, "window", arena_fmt(p->arena, "%lld tokens", (long long)p->window));
    else
        row_no(p, "window", "the server does not tell", "say it: --window N; --thorough tries it");
}

/* Whether the probe was answered; else its row is made here. */
static bool answered(struct probing *p, enum probe_id id, const struct llm_outcome *o)
{
    static const struct {
        const char *what, *mend;
        bool needed;
    } rows[] = {
        [PROBE_ANSWER] = { "answer", NULL, true },
        [PROBE_STREAM] = { "stream", NULL, true },
        [PROBE_REASONING] = { "reasoning", "works without", false },
        [PROBE_CALL] = { "call", PARSER_HINT, true },
        [PROBE_RESULT] = { "result", NULL, true },
        [PROBE_PARALLEL] = { "parallel", "works without", false },
        [PROBE_TOKENS] = { "tokens", "works without; training does not", false },
        [PROBE_WINDOW] = { "window", "say it: --window N", false },
        [PROBE_MARKER] = { "marker", NULL, true },
    };
    const struct fault *f = &o->fault;
    if (f->kind == FAULT_NONE && o->reply.end != REPLY_REFUSED)
        return true;
    bool ask_parser =
        id == PROBE_CALL && f->status >= 400 && f->status < 500 && wire_holds(f->message, "tool");
    row(p, (struct probe_row){
               .what = rows[id].what,
               .needed = rows[id].needed,
               .found = f->kind == FAULT_NONE
                            ? arena_fmt(p->arena, "refused: %s", quoted(p, o->reply.text))
                            : fault_text(p, f),
               .mend = rows[id].mend && (id != PROBE_CALL || ask_parser) ? rows[id].mend
                                                                         : mend_of(f) });
    return false;
}

bool probe_whole(const struct probing *p, enum probe_id id)
{
    return id == PROBE_ANSWER || p->whole;
}

/* Seen at llama-cpp-python: a stream with tools ends without a word, a whole answer comes. */
static bool stream_failed(struct probing *p, enum probe_id id, const struct llm_outcome *o)
{
    enum fault_kind kind = o->fault.kind;
    bool broken = kind == FAULT_CUT || kind == FAULT_TRANSPORT || kind == FAULT_SERVER ||
                  kind == FAULT_GARBAGE;
    if (id != PROBE_CALL || p->whole || !broken)
        return false;
    p->whole = true;
    return true;
}

static void whole_row(struct probing *p)
{
    row_no(p, "call", "streams with tools fail, whole answers come: nothing is streamed",
           "another server, or a newer one, streams calls");
    learn(p, "stream=false");
}

bool probe_take(struct probing *p, enum probe_id id, const struct llm_outcome *o)
{
    if (stream_failed(p, id, o))
        return true;
    if (o->fault.kind == FAULT_NONE) /* else they were in vain, and are undone */
        steps_take(p, o->changes);
    if (p->window == 0)
        p->window = o->n_window;
    if (id == PROBE_WINDOW) { /* what came beside the window does not matter */
        window_row(p);
        return false;
    }
    if (!answered(p, id, o))
        return false;
    if (id == PROBE_CALL && p->whole)
        whole_row(p);
    switch (id) {
    case PROBE_ANSWER:
        answer_take(p, o);
        break;
    case PROBE_STREAM:
        stream_take(p, o);
        if (p->window > 0)
            window_row(p);
        break;
    case PROBE_REASONING:
        reasoning_take(p, o);
        break;
    case PROBE_CALL:
        call_take(p, o);
        break;
    case PROBE_RESULT:
        row_ok(p, "result", "a history with a call and its result is taken");
        break;
    case PROBE_PARALLEL:
        parallel_take(p, o);
        break;
    case PROBE_TOKENS:
        tokens_take_row(p, o);
        break;
    case PROBE_MARKER:
        marker_take(p, o);
        break;
    case PROBE_WINDOW:
    case PROBES:
        break;
    }
    return false;
}
