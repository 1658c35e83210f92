/* Events of /v1/messages, and whole bodies: a block of a body is one that starts whole. */
#include "llm/assembly_int.h"
#include "llm/wire.h"

static struct slot *find_block(struct assembly *as, const json_t *o)
{
    int64_t key;
    if (!wire_int(o, "index", &key))
        return as->n_slots > 0 ? &as->slots[as->n_slots - 1] : NULL;
    for (size_t i = as->n_slots; i-- > 0;)
        if (as->slots[i].keyed && as->slots[i].key == key)
            return &as->slots[i];
    return NULL;
}

static struct slot *call_start(struct assembly *as, const json_t *block)
{
    const json_t *input = json_object_get(block, "input");
    struct slot *s = slot_open(as, CHAT_CALL);
    if (s == NULL)
        return NULL;
    s->id = wire_clean(as->arena, str_copy(as->arena, wire_text(block, "id")));
    assembly_add(as, &s->name, wire_text(block, "name"));
    if (json_object_size(input) > 0) {
        struct str text = json_text(as->arena, input);
        assembly_add(as, &s->text, text);
        s->from_start = true;
    } else if (json_is_string(input)) {
        slot_args(as, s, input);
    }
    return s;
}

static struct slot *block_start(struct assembly *as, const json_t *block)
{
    struct str type = wire_text(block, "type");
    struct slot *s;
    if (str_eq(type, S("tool_use")))
        return call_start(as, block);
    if (str_eq(type, S("text"))) {
        s = slot_open(as, CHAT_TEXT);
        if (s != NULL)
            assembly_add(as, &s->text, wire_text(block, "text"));
    } else if (str_eq(type, S("thinking"))) {
        s = slot_open(as, CHAT_THINKING);
        as->reasoning_key = "thinking";
        if (s != NULL) {
            assembly_add(as, &s->text, wire_text(block, "thinking"));
            assembly_add(as, &s->seal, wire_text(block, "signature"));
        }
    } else if (str_eq(type, S("redacted_thinking"))) {
        s = slot_open(as, CHAT_SEALED);
        if (s != NULL)
            assembly_add(as, &s->text, wire_text(block, "data"));
    } else {
        as->notes |= NOTE_UNKNOWN_BLOCK;
        s = slot_open(as, CHAT_RESULT); /* held so that its deltas find it; never a part */
    }
    return s;
}

static void block_delta(struct assembly *as, const json_t *o)
{
    static const struct {
        const char *type, *key;
    } rows[] = { { "text_delta", "text" },
                 { "input_json_delta", "partial_json" },
                 { "thinking_delta", "thinking" },
                 { "signature_delta", "signature" } };
    const json_t *delta = json_object_get(o, "delta");
    struct slot *s = find_block(as, o);
    struct str type = wire_text(delta, "type");
    if (s == NULL) {
        assembly_fail(as, fault_ours(as->arena, FAULT_GARBAGE, "a delta of no block"));
        return;
    }
    for (size_t i = 0; i < COUNT(rows); i++) {
        if (!str_eq(type, str_from(rows[i].type)))
            continue;
        struct str piece = wire_text(delta, rows[i].key);
        struct buf *to = str_eq(type, S("signature_delta")) ? &s->seal : &s->text;
        if (s->from_start && str_eq(type, S("input_json_delta")) && piece.len > 0) {
            s->text.len = 0; /* the pieces are the input; the start was a foretaste */
            s->from_start = false;
        }
        assembly_add(as, to, piece);
    }
}

/* Anthropic counts cached input beside, not within; counts are cumulative, the last one holds. */
static void usage_take(struct assembly *as, const json_t *u)
{
    struct reply_usage *to = &as->usage;
    int64_t fresh = to->input_total - to->input_cached - to->input_cache_write;
    if (!json_is_object(u))
        return;
    wire_count(u, "input_tokens", &fresh);
    wire_count(u, "cache_read_input_tokens", &to->input_cached);
    wire_count(u, "cache_creation_input_tokens", &to->input_cache_write);
    wire_count(u, "output_tokens", &to->output_total);
    to->input_total = fresh + to->input_cached + to->input_cache_write;
    as->has_usage = true;
}

static void message_take(struct assembly *as, const json_t *m)
{
    const json_t *block;
    size_t i;
    if (as->model.len == 0)
        as->model = wire_clean(as->arena, str_copy(as->arena, wire_text(m, "model")));
    usage_take(as, json_object_get(m, "usage"));
    json_array_foreach(json_object_get(m, "content"), i, block)
    {
        struct slot *s = block_start(as, block);
        if (s != NULL) {
            s->keyed = true;
            s->key = (int64_t)i;
        }
    }
    assembly_stop(as, wire_text(m, "stop_reason"));
}

static void message_delta(struct assembly *as, const json_t *o)
{
    const json_t *delta = json_object_get(o, "delta");
    const json_t *details = json_object_get(delta, "stop_details");
    assembly_stop(as, wire_text(delta, "stop_reason"));
    assembly_add(as, &as->refusal, wire_text(details, "explanation"));
    usage_take(as, json_object_get(o, "usage"));
}

void anthropic_object(struct assembly *as, struct str event, const json_t *o)
{
    struct str type = wire_text(o, "type");
    const json_t *error = json_object_get(o, "error");
    if (type.len == 0)
        type = event;
    if (str_eq(type, S("error")) || (error != NULL && !json_is_null(error))) {
        assembly_error(as, o);
    } else if (str_eq(type, S("message_start"))) {
        message_take(as, json_object_get(o, "message"));
    } else if (str_eq(type, S("message"))) {
        message_take(as, o);
    } else if (str_eq(type, S("content_block_start"))) {
        struct slot *s = block_start(as, json_object_get(o, "content_block"));
        int64_t key;
        if (s != NULL && wire_int(o, "index", &key)) {
            s->keyed = true;
            s->key = key;
        }
    } else if (str_eq(type, S("content_block_delta"))) {
        block_delta(as, o);
    } else if (str_eq(type, S("message_delta"))) {
        message_delta(as, o);
    } else if (str_eq(type, S("message_stop"))) {
        as->done = true;
    } else if (str_eq(type, S("ping"))) {
        as->n_pings++;
    } /* content_block_stop and what is not known yet say nothing that is needed */
}
