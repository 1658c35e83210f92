#include "llm/generate.h"

#include "core/own.h"
#include "llm/wire.h"

#define BODY_MAX ((size_t)256 << 20)
#define CLAMPED -9999.0 /* what vLLM writes for minus infinity */

static json_t *ids_json(const int32_t *ids, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_integer(ids[i]));
    return list;
}

static json_t *write_vllm(const char *model, const struct generate *g)
{
    json_t *j =
        json_pack("{s:s, s:o, s:I, s:f, s:f, s:i, s:b, s:b, s:b}", "model", model, "prompt",
                  ids_json(g->prompt, g->n_prompt), "max_tokens", (json_int_t)g->max_tokens,
                  "temperature", g->temperature, "top_p", g->top_p, "logprobs", 0,
                  "return_token_ids", 1, "return_tokens_as_token_ids", 1, "skip_special_tokens", 0);
    if (g->has_seed)
        json_object_set_new(j, "seed", json_integer(g->seed));
    if (g->n_stop > 0)
        json_object_set_new(j, "stop_token_ids", ids_json(g->stop, g->n_stop));
    return j;
}

static json_t *write_sglang(const struct generate *g)
{
    json_t *s =
        json_pack("{s:I, s:f, s:f, s:b}", "max_new_tokens", (json_int_t)g->max_tokens,
                  "temperature", g->temperature, "top_p", g->top_p, "skip_special_tokens", 0);
    if (g->has_seed)
        json_object_set_new(s, "sampling_seed", json_integer(g->seed));
    if (g->n_stop > 0)
        json_object_set_new(s, "stop_token_ids", ids_json(g->stop, g->n_stop));
    return json_pack("{s:o, s:o, s:b}", "input_ids", ids_json(g->prompt, g->n_prompt),
                     "sampling_params", s, "return_logprob", 1);
}

json_t *generate_write(enum generate_api api, const char *model, const struct generate *g)
{
    return api == GENERATE_VLLM ? write_vllm(model, g) : write_sglang(g);
}

/* ---- answers ---- */

static enum err_code id_read(const json_t *j, int32_t *ret, struct err *err)
{
    static const struct str head = { "token_id:", 9 };
    int64_t v = json_integer_value(j);
    struct str s = { json_string_value(j), json_string_length(j) };
    struct err not_a_number;
    bool right = json_is_integer(j);
    if (json_is_string(j) && str_starts(s, head))
        right = str_int(str_drop(s, head.len), 0, INT32_MAX, &v, &not_a_number) == OK;
    if (!right || v < 0 || v > INT32_MAX)
        return err_raise(err, ERR_FORMAT, "a token id is not one");
    *ret = (int32_t)v;
    return OK;
}

static void logprob_read(const json_t *j, struct generated *g, size_t i)
{
    g->logprob[i] = json_is_number(j) ? json_number_value(j) : CLAMPED;
    if (g->logprob[i] <= CLAMPED)
        g->n_clamped++;
}

static enum generate_end end_of(struct str reason)
{
    if (str_eq(reason, S("length")))
        return GENERATE_LENGTH;
    return str_eq(reason, S("stop")) ? GENERATE_STOP : GENERATE_ABORT;
}

/* The server took the prompt that was sent, where it says which. */
static enum err_code prompt_check(const json_t *ids, const struct generate *g, struct err *err)
{
    if (!json_is_array(ids))
        return OK;
    if (json_array_size(ids) != g->n_prompt)
        return err_raise(err, ERR_FORMAT, "%zu prompt tokens were sent, %zu taken", g->n_prompt,
                         json_array_size(ids));
    for (size_t i = 0; i < g->n_prompt; i++)
        if (json_integer_value(json_array_get(ids, i)) != g->prompt[i])
            return err_raise(err, ERR_FORMAT, "prompt token %zu is not what was sent", i);
    return OK;
}

static void lists_make(struct arena *a, struct generated *ret, size_t n)
{
    ret->ids = arena_new(a, int32_t, n);
    ret->logprob = arena_new(a, double, n);
    ret->n = n;
}

static enum err_code read_vllm(struct arena *a, const json_t *o, const struct generate *g,
                               struct generated *ret, struct err *err)
{
    const json_t *choice = json_array_get(json_object_get(o, "choices"), 0);
    const json_t *logprobs = json_object_get(choice, "logprobs");
    const json_t *values = json_object_get(logprobs, "token_logprobs");
    const json_t *ids = json_object_get(choice, "token_ids");
    const json_t *prompt = json_object_get(choice, "prompt_token_ids");
    if (!json_is_array(ids)) /* before 0.10.2 */
        ids = json_object_get(logprobs, "tokens");
    if (!json_is_array(ids) || !json_is_array(values))
        return err_raise(err, ERR_FORMAT, "an answer without token ids or log-probabilities");
    if (json_array_size(ids) != json_array_size(values))
        return err_raise(err, ERR_FORMAT, "%zu token ids and %zu log-probabilities",
                         json_array_size(ids), json_array_size(values));
    if (!json_is_array(prompt))
        prompt = json_object_get(o, "prompt_token_ids");
    if (prompt_check(prompt, g, err) != OK)
        return err->code;
    lists_make(a, ret, json_array_size(ids));
    for (size_t i = 0; i < ret->n; i++) {
        if (id_read(json_array_get(ids, i), &ret->ids[i], err) != OK)
            return err->code;
        logprob_read(json_array_get(values, i), ret, i);
    }
    const json_t *usage = json_object_get(o, "usage");
    wire_count(usage, "prompt_tokens", &ret->prompt_tokens);
    wire_count(json_object_get(usage, "prompt_tokens_details"), "cached_tokens",
               &ret->cached_tokens);
    ret->end = end_of(wire_text(choice, "finish_reason"));
    return OK;
}

static enum err_code read_sglang(struct arena *a, const json_t *o, struct generated *ret,
                                 struct err *err)
{
    const json_t *meta = json_object_get(o, "meta_info");
    const json_t *rows = json_object_get(meta, "output_token_logprobs");
    const json_t *ids = json_object_get(o, "output_ids");
    if (!json_is_array(rows))
        return err_raise(err, ERR_FORMAT, "an answer without output_token_logprobs");
    if (json_is_array(ids) && json_array_size(ids) != json_array_size(rows))
        return err_raise(err, ERR_FORMAT, "%zu token ids and %zu log-probabilities",
                         json_array_size(ids), json_array_size(rows));
    lists_make(a, ret, json_array_size(rows));
    for (size_t i = 0; i < ret->n; i++) {
        const json_t *row = json_array_get(rows, i); /* value, id, text or null */
        if (id_read(json_array_get(row, 1), &ret->ids[i], err) != OK)
            return err->code;
        if (json_is_array(ids) && json_integer_value(json_array_get(ids, i)) != ret->ids[i])
            return err_raise(err, ERR_FORMAT, "token %zu has two ids", i);
        logprob_read(json_array_get(row, 0), ret, i);
    }
    wire_count(meta, "prompt_tokens", &ret->prompt_tokens);
    wire_count(meta, "cached_tokens", &ret->cached_tokens);
    ret->end = end_of(wire_text(json_object_get(meta, "finish_reason"), "type"));
    return OK;
}

enum err_code generate_read(struct arena *a, enum generate_api api, const struct generate *g,
                            struct str body, struct generated *ret, struct err *err)
{
    bool mended = false;
    struct generated got = { 0 };
    if (body.len > BODY_MAX)
        return err_raise(err, ERR_LIMIT, "an answer of %zu bytes", body.len);
    own_json o = wire_json(body, &mended);
    const json_t *one = json_is_array(o) ? json_array_get(o, 0) : o;
    if (!json_is_object(one))
        return err_raise(err, ERR_FORMAT, "the answer is not JSON");
    enum err_code code =
        api == GENERATE_VLLM ? read_vllm(a, one, g, &got, err) : read_sglang(a, one, &got, err);
    if (code == OK)
        *ret = got;
    return code;
}
