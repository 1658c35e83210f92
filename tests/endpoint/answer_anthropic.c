/* /v1/messages, whole and streamed. */
#include "endpoint/answer.h"

static json_t *text(struct str s)
{
    return json_stringn(s.ptr ? s.ptr : "", s.len);
}

static const char *stop_reason(const struct telling *t)
{
    static const char *const words[] = {
        [END_STOP] = "end_turn",
        [END_LENGTH] = "max_tokens",
        [END_CONTEXT] = "model_context_window_exceeded",
        [END_PAUSE] = "pause_turn",
        [END_NONE] = NULL,
        [END_REFUSED] = "refusal",
        [END_REFUSED_FIELD] = "refusal",
        [END_REFUSED_FILTER] = "refusal",
        [END_ABORT] = "end_turn",
    };
    return t->end == END_STOP && t->n_calls > 0 && !t->turn->markup ? "tool_use" : words[t->end];
}

/* Input does not hold what was cached. */
static json_t *usage(const struct telling *t, int64_t output)
{
    int64_t cached = t->cached > 0 ? t->cached : 0;
    return json_pack("{s:I, s:I, s:I, s:I}", "input_tokens", (json_int_t)(t->input - cached),
                     "cache_read_input_tokens", (json_int_t)cached, "cache_creation_input_tokens",
                     (json_int_t)0, "output_tokens", (json_int_t)output);
}

static json_t *message(const struct telling *t, json_t *content, const char *reason, json_t *count)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:o, s:s?, s:n, s:o}", "id", "msg_scripted", "type",
                     "message", "role", "assistant", "model", t->script->model, "content", content,
                     "stop_reason", reason, "stop_sequence", "usage", count);
}

static bool thinks(const struct telling *t)
{
    return t->talk->thinking && t->thinking.len > 0;
}

static json_t *signature(void)
{
    return json_string("c2NyaXB0ZWQ=");
}

json_t *anthropic_whole(struct arena *a, const struct telling *t)
{
    json_t *list = json_array();
    if (thinks(t))
        json_array_append_new(list, json_pack("{s:s, s:o, s:o}", "type", "thinking", "thinking",
                                              text(t->thinking), "signature", signature()));
    if (t->text.len > 0)
        json_array_append_new(list, json_pack("{s:s, s:o}", "type", "text", "text", text(t->text)));
    for (size_t i = 0; i < t->n_calls && !t->turn->markup; i++) {
        struct str args = tell_args(t, i);
        json_t *input = json_loadb(args.ptr, args.len, 0, NULL);
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:o}", "type", "tool_use", "id",
                                              tell_call_id(a, t, i), "name", t->turn->calls[i].name,
                                              "input", input ? input : json_object()));
    }
    return message(t, list, stop_reason(t), usage(t, t->output));
}

/* ---- streamed ---- */

static void typed(struct answer *ans, const char *type, json_t *j)
{
    json_object_set_new(j, "type", json_string(type));
    answer_event(ans, type, j);
}

static void delta(struct answer *ans, int index, json_t *d)
{
    typed(ans, "content_block_delta", json_pack("{s:i, s:o}", "index", index, "delta", d));
}

static void block(struct answer *ans, int index, json_t *start)
{
    typed(ans, "content_block_start",
          json_pack("{s:i, s:o}", "index", index, "content_block", start));
}

static void block_end(struct answer *ans, int index)
{
    typed(ans, "content_block_stop", json_pack("{s:i}", "index", index));
}

static void pieces(struct answer *ans, const struct telling *t, int index, const char *type,
                   const char *key, struct str s)
{
    struct str piece;
    while (piece_take(t->turn->pieces, &s, &piece))
        delta(ans, index, json_pack("{s:s, s:o}", "type", type, key, text(piece)));
}

static void call_block(struct answer *ans, const struct telling *t, int index, size_t n)
{
    block(ans, index,
          json_pack("{s:s, s:s, s:s, s:{}}", "type", "tool_use", "id",
                    tell_call_id(ans->arena, t, n), "name", t->turn->calls[n].name, "input"));
    delta(ans, index, json_pack("{s:s, s:s}", "type", "input_json_delta", "partial_json", ""));
    pieces(ans, t, index, "input_json_delta", "partial_json", tell_args(t, n));
    block_end(ans, index);
}

void anthropic_tell(struct answer *ans, const struct telling *t)
{
    const char *reason = stop_reason(t);
    int index = 0;
    typed(ans, "message_start",
          json_pack("{s:o}", "message", message(t, json_array(), NULL, usage(t, 1))));
    typed(ans, "ping", json_object());
    if (thinks(t)) {
        block(ans, index,
              json_pack("{s:s, s:s, s:s}", "type", "thinking", "thinking", "", "signature", ""));
        pieces(ans, t, index, "thinking_delta", "thinking", t->thinking);
        delta(ans, index,
              json_pack("{s:s, s:o}", "type", "signature_delta", "signature", signature()));
        block_end(ans, index++);
    }
    if (t->text.len > 0) {
        block(ans, index, json_pack("{s:s, s:s}", "type", "text", "text", ""));
        pieces(ans, t, index, "text_delta", "text", t->text);
        block_end(ans, index++);
    }
    for (size_t i = 0; i < t->n_calls && !t->turn->markup; i++)
        call_block(ans, t, index++, i);
    if (reason != NULL)
        typed(ans, "message_delta",
              json_pack("{s:{s:s, s:n}, s:{s:I}}", "delta", "stop_reason", reason, "stop_sequence",
                        "usage", "output_tokens", (json_int_t)t->output));
    typed(ans, "message_stop", json_object());
}
