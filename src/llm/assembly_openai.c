/* Chunks of /v1/chat/completions, and whole bodies: a message is a delta that comes once. */
#include "core/own.h"
#include "llm/assembly_int.h"
#include "llm/wire.h"

/* ---- tool calls ---- */

static struct slot *find_id(struct assembly *as, struct str id)
{
    for (size_t i = as->n_slots; id.len > 0 && i-- > 0;)
        if (str_eq(as->slots[i].id, id))
            return &as->slots[i];
    return NULL;
}

static struct slot *find_key(struct assembly *as, int64_t key)
{
    for (size_t i = as->n_slots; i-- > 0;)
        if (as->slots[i].keyed && as->slots[i].key == key)
            return &as->slots[i];
    return NULL;
}

struct piece {
    struct str id, name;
    const json_t *args;
};

/* Without ids, a second call under an index in use shows by beginning anew behind a whole one. */
static bool begins_anew(const struct slot *s, const struct piece *p)
{
    struct str args = { json_string_value(p->args), json_string_length(p->args) };
    struct str held = { s->text.ptr, s->text.len };
    bool same_name = str_eq((struct str){ s->name.ptr, s->name.len }, p->name);
    return p->id.len == 0 && p->name.len > 0 && s->scan.whole && str_starts(args, S("{")) &&
           !(same_name && str_eq(args, held));
}

static struct slot *slot_keyed(struct assembly *as, int64_t key, const struct piece *p)
{
    struct slot *s = find_key(as, key);
    bool other_id = s != NULL && p->id.len > 0 && s->id.len > 0 && !str_eq(p->id, s->id);
    if (other_id || (s != NULL && begins_anew(s, p))) {
        as->notes |= NOTE_SAME_INDEX;
        s = other_id ? find_id(as, p->id) : NULL;
    }
    if (s == NULL && (s = slot_open(as, CHAT_CALL)) != NULL) {
        s->keyed = true;
        s->key = key;
    }
    return s;
}

static struct slot *slot_unkeyed(struct assembly *as, const struct piece *p)
{
    struct slot *last = as->n_slots > 0 ? &as->slots[as->n_slots - 1] : NULL;
    struct slot *s = find_id(as, p->id);
    as->notes |= NOTE_NO_INDEX;
    if (s != NULL)
        return s;
    bool opens = p->id.len > 0 || (p->name.len > 0 && !(last != NULL && last->name.len == 0));
    return last == NULL || opens ? slot_open(as, CHAT_CALL) : last;
}

static void name_take(struct assembly *as, struct slot *s, struct str name)
{
    if (name.len == 0 || str_eq((struct str){ s->name.ptr, s->name.len }, name))
        return;
    if (!as->spec.name_fragments)
        s->name.len = 0;
    assembly_add(as, &s->name, name);
}

static void call_take(struct assembly *as, const json_t *entry, bool whole)
{
    const json_t *function = json_object_get(entry, "function");
    const json_t *from = json_is_object(function) ? function : entry;
    struct piece p = { .id = wire_text(entry, "id"),
                       .name = wire_text(from, "name"),
                       .args = json_object_get(from, "arguments") };
    int64_t key = 0;
    bool keyed = wire_int(entry, "index", &key);
    if (!json_is_object(entry))
        return;
    if (p.args == NULL)
        p.args = json_object_get(from, "input");
    struct slot *s;
    if (whole && !keyed) { /* a whole body lists whole calls */
        s = slot_open(as, CHAT_CALL);
    } else {
        s = keyed ? slot_keyed(as, key, &p) : slot_unkeyed(as, &p);
    }
    if (s == NULL)
        return;
    if (s->id.len == 0 && p.id.len > 0)
        s->id = wire_clean(as->arena, str_copy(as->arena, p.id));
    name_take(as, s, p.name);
    slot_args(as, s, p.args);
    const json_t *seal = json_object_get(entry, "extra_content");
    if (json_is_object(seal)) {
        s->seal.len = 0;
        assembly_add(as, &s->seal, json_text(as->arena, seal));
    }
}

static void calls_take(struct assembly *as, const json_t *delta, bool whole)
{
    const json_t *calls = json_object_get(delta, "tool_calls"), *entry;
    const json_t *legacy = json_object_get(delta, "function_call");
    size_t i;
    json_array_foreach(calls, i, entry) call_take(as, entry, whole);
    if (json_is_object(calls))
        call_take(as, calls, whole);
    if (json_is_object(legacy)) {
        json_t *entry_of = json_pack("{s:i, s:O}", "index", 0, "function", legacy);
        as->notes |= NOTE_LEGACY_CALL;
        call_take(as, entry_of, whole);
        json_decref(entry_of);
    }
}

/* ---- text ---- */

/* Text, or a list of parts (Mistral: with thinking among them). */
static void content_take(struct assembly *as, const json_t *content, struct buf *to)
{
    const json_t *part;
    size_t i;
    if (json_is_string(content))
        assembly_add(as, to,
                     (struct str){ json_string_value(content), json_string_length(content) });
    json_array_foreach(content, i, part)
    {
        struct str type = wire_text(part, "type");
        if (str_eq(type, S("thinking"))) {
            const json_t *inner = json_object_get(part, "thinking"), *one;
            size_t k;
            if (json_is_string(inner))
                assembly_add(as, &as->reasoning, wire_text(part, "thinking"));
            json_array_foreach(inner, k, one)
                assembly_add(as, &as->reasoning, wire_text(one, "text"));
        } else if (str_eq(type, S("refusal"))) {
            assembly_add(as, &as->refusal, wire_text(part, "refusal"));
        } else {
            assembly_add(as, to, wire_text(part, "text"));
        }
    }
}

static void reasoning_take(struct assembly *as, const json_t *delta)
{
    static const char *const keys[] = { "reasoning_content", "reasoning", "reasoning_text" };
    const json_t *details = json_object_get(delta, "reasoning_details"), *one;
    bool taken = false;
    size_t k;
    for (size_t i = 0; i < COUNT(keys); i++) {
        struct str s = wire_text(delta, keys[i]);
        if (s.len == 0)
            continue;
        if (taken)
            as->notes |= NOTE_TWIN_REASONING;
        else
            assembly_add(as, &as->reasoning, s);
        as->reasoning_key = keys[i];
        taken = true;
    }
    json_array_foreach(details, k, one)
    {
        if (as->details.len > 0)
            assembly_add(as, &as->details, S(","));
        own_mem char *z = json_dumps(one, JSON_COMPACT | JSON_ENCODE_ANY);
        assembly_add(as, &as->details, str_from(z));
    }
}

/* ---- usage ---- */

static void usage_take(struct assembly *as, const json_t *u)
{
    struct reply_usage got = { 0 };
    const json_t *in = json_object_get(u, "prompt_tokens_details");
    const json_t *out = json_object_get(u, "completion_tokens_details");
    bool any = wire_count(u, "prompt_tokens", &got.input_total);
    any = wire_count(u, "completion_tokens", &got.output_total) || any;
    if (!any)
        return;
    if (!wire_count(in, "cached_tokens", &got.input_cached) &&
        !wire_count(u, "cached_tokens", &got.input_cached))          /* Moonshot */
        wire_count(u, "prompt_cache_hit_tokens", &got.input_cached); /* DeepSeek */
    if (!wire_count(out, "reasoning_tokens", &got.reasoning))
        wire_count(u, "reasoning_tokens", &got.reasoning);
    as->usage = got;
    as->has_usage = true;
}

/* llama.cpp's own counts, where usage is not sent. */
static void timings_take(struct assembly *as, const json_t *t)
{
    int64_t prompt = 0, cached = 0, output = 0;
    if (as->has_usage || !wire_count(t, "prompt_n", &prompt))
        return;
    wire_count(t, "cache_n", &cached);
    wire_count(t, "predicted_n", &output);
    as->usage = (struct reply_usage){ .input_total = prompt + cached,
                                      .input_cached = cached,
                                      .output_total = output };
    as->has_usage = true;
}

/* ---- chunks ---- */

static void choice_take(struct assembly *as, const json_t *choice)
{
    const json_t *delta = json_object_get(choice, "delta");
    const json_t *message = json_object_get(choice, "message");
    bool whole = !json_is_object(delta) && json_is_object(message);
    int64_t index = 0;
    wire_int(choice, "index", &index);
    if (as->has_choice && index != as->choice)
        return;
    as->has_choice = true;
    as->choice = index;
    if (whole)
        delta = message;
    reasoning_take(as, delta);
    content_take(as, json_object_get(delta, "content"), &as->text);
    assembly_add(as, &as->refusal, wire_text(delta, "refusal"));
    calls_take(as, delta, whole);
    assembly_stop(as, wire_text(choice, "finish_reason"));
    usage_take(as, json_object_get(choice, "usage")); /* Moonshot */
    tokens_take(as, &as->tokens.output, &as->tokens.n_output, &as->cap_output,
                json_object_get(choice, "token_ids"));
    if (as->tokens.n_prompt == 0)
        tokens_take(as, &as->tokens.prompt, &as->tokens.n_prompt, &as->cap_prompt,
                    json_object_get(choice, "prompt_token_ids"));
    logprobs_take(as, json_object_get(choice, "logprobs"));
}

static bool is_error(const json_t *chunk)
{
    const json_t *e = json_object_get(chunk, "error");
    bool named = str_eq(wire_text(chunk, "object"), S("error")) ||
                 str_eq(wire_text(chunk, "type"), S("error"));
    bool bare = json_object_get(chunk, "choices") == NULL && json_object_get(chunk, "detail");
    return (e != NULL && !json_is_null(e)) || named || bare;
}

void openai_object(struct assembly *as, const json_t *chunk)
{
    const json_t *choices = json_object_get(chunk, "choices"), *choice;
    size_t i;
    if (is_error(chunk)) {
        assembly_error(as, chunk);
        return;
    }
    json_array_foreach(choices, i, choice) choice_take(as, choice);
    if (as->model.len == 0 && json_array_size(choices) > 0)
        as->model = wire_clean(as->arena, str_copy(as->arena, wire_text(chunk, "model")));
    usage_take(as, json_object_get(chunk, "usage"));
    usage_take(as, json_object_get(json_object_get(chunk, "x_groq"), "usage"));
    timings_take(as, json_object_get(chunk, "timings"));
    if (as->tokens.n_prompt == 0)
        tokens_take(as, &as->tokens.prompt, &as->tokens.n_prompt, &as->cap_prompt,
                    json_object_get(chunk, "prompt_token_ids"));
}
