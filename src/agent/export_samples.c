/* Tokens of an episode as samples for training. */
#include <math.h>

#include "agent/export.h"

#define VALUE 4 /* bytes of an id, and of a log-probability */

static uint32_t value_at(const char *p, size_t i)
{
    const unsigned char *c = (const unsigned char *)p + i * VALUE;
    return (uint32_t)c[0] | (uint32_t)c[1] << 8 | (uint32_t)c[2] << 16 | (uint32_t)c[3] << 24;
}

int32_t export_id(const char *ids, size_t i)
{
    return (int32_t)value_at(ids, i);
}

float export_logprob(const struct export_tokens *t, size_t i)
{
    uint32_t bits = value_at(t->logprob, i);
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

enum err_code export_tokens_at(const json_t *response, struct str file, struct export_tokens *ret,
                               struct err *err)
{
    const json_t *j = json_object_get(response, "tokens");
    int64_t offset = trace_int(j, "offset", -1), prompt = trace_int(j, "prompt", -1);
    int64_t output = trace_int(j, "output", -1);
    *ret = (struct export_tokens){ 0 };
    if (!json_is_object(j))
        return OK;
    if (offset < 0 || prompt < 0 || output < 0)
        return err_raise(err, ERR_FORMAT, "event %lld: tokens are not {offset, prompt, output}",
                         (long long)trace_int(response, "seq", -1));
    int64_t end = offset + (prompt + 2 * output) * VALUE; /* each at most TRACE_INT_MAX */
    if (end > (int64_t)file.len) {
        err_raise(err, ERR_FORMAT, "event %lld: its tokens end at byte %lld, the file at %zu",
                  (long long)trace_int(response, "seq", -1), (long long)end, file.len);
        return err_hint(err, TRACE_TOKENS " lies beside the log, and is of the same run");
    }
    const char *p = file.ptr + offset;
    *ret = (struct export_tokens){ .prompt = p,
                                   .output = p + prompt * VALUE,
                                   .logprob = p + (prompt + output) * VALUE,
                                   .n_prompt = (size_t)prompt,
                                   .n_output = (size_t)output };
    return OK;
}

struct sample {
    const char *why; /* it begins: "start", "context", "prompt" */
    json_t *prompt, *response, *mask, *logprob;
    int64_t first, last; /* turns */
    struct str end;      /* of the last answer */
};

struct samples {
    const struct trace *t;
    FILE *out;
    size_t n;
    struct sample now;
    bool open;
};

static void sample_write(struct samples *s)
{
    static const char *const told[] = { "episode", "attempt",   "task",  "model",
                                        "status",  "truncated", "reward" };
    if (!s->open)
        return;
    own_json j = json_object();
    own_json summary = trace_summary(s->t);
    struct trace_outcome o = trace_outcome(s->t);
    bool broken = str_eq(s->now.end, S("cut")) || str_eq(s->now.end, S("failed"));
    json_object_set_new(j, "schema", json_string("cuda-agent/sample/1"));
    for (size_t i = 0; i < COUNT(told); i++)
        json_object_set(j, told[i], json_object_get(summary, told[i]));
    json_object_set_new(j, "valid", json_boolean(o.valid && !broken));
    json_object_set_new(j, "sample", json_integer((json_int_t)s->n));
    json_object_set_new(j, "begins", json_string(s->now.why));
    json_object_set_new(j, "turns",
                        json_pack("[I, I]", (json_int_t)s->now.first, (json_int_t)s->now.last));
    json_object_set_new(j, "finish", json_stringn(s->now.end.ptr, s->now.end.len));
    json_object_set(j, "sampling", json_object_get(s->t->start, "sampling"));
    json_object_set_new(j, "prompt_ids", s->now.prompt);
    json_object_set_new(j, "response_ids", s->now.response);
    json_object_set_new(j, "mask", s->now.mask);
    json_object_set_new(j, "logprobs", s->now.logprob);
    json_dumpf(j, s->out, JSON_COMPACT | JSON_REAL_PRECISION(9));
    fputc('\n', s->out);
    s->open = false;
    s->n++;
}

static void sample_begin(struct samples *s, const char *why, const json_t *response,
                         const struct export_tokens *k)
{
    sample_write(s);
    s->now = (struct sample){ .why = why,
                              .prompt = json_array(),
                              .response = json_array(),
                              .mask = json_array(),
                              .logprob = json_array(),
                              .first = trace_int(response, "turn", -1) };
    for (size_t i = 0; i < k->n_prompt; i++)
        json_array_append_new(s->now.prompt, json_integer(export_id(k->prompt, i)));
    s->open = true;
}

static bool id_is(const json_t *list, size_t i, int32_t id)
{
    return json_integer_value(json_array_get(list, i)) == id;
}

/* Does this prompt begin with all that the sample holds? */
static bool extends(const struct sample *s, const struct export_tokens *k)
{
    size_t p = json_array_size(s->prompt), r = json_array_size(s->response);
    if (k->n_prompt < p + r)
        return false;
    for (size_t i = 0; i < p; i++)
        if (!id_is(s->prompt, i, export_id(k->prompt, i)))
            return false;
    for (size_t i = 0; i < r; i++)
        if (!id_is(s->response, i, export_id(k->prompt, p + i)))
            return false;
    return true;
}

static void token_add(struct sample *s, int32_t id, int mask, json_t *logprob)
{
    json_array_append_new(s->response, json_integer(id));
    json_array_append_new(s->mask, json_integer(mask));
    json_array_append_new(s->logprob, logprob);
}

static void answer_add(struct samples *s, const json_t *response, const struct export_tokens *k)
{
    size_t held = json_array_size(s->now.prompt) + json_array_size(s->now.response);
    for (size_t i = held; i < k->n_prompt; i++)
        token_add(&s->now, export_id(k->prompt, i), 0, json_real(0));
    for (size_t i = 0; i < k->n_output; i++) {
        float x = export_logprob(k, i);
        token_add(&s->now, export_id(k->output, i), 1,
                  isfinite(x) ? json_real((double)x) : json_null());
    }
    s->now.last = trace_int(response, "turn", -1);
    s->now.end = trace_text(response, "end");
}

static void samples_drop(struct samples *s)
{
    if (!s->open)
        return;
    json_decref(s->now.prompt);
    json_decref(s->now.response);
    json_decref(s->now.mask);
    json_decref(s->now.logprob);
    s->open = false;
}

enum err_code export_samples(const struct trace *t, struct str tokens, FILE *out, size_t *ret_n,
                             struct err *err)
{
    struct samples s = { .t = t, .out = out };
    const char *why = "start"; /* NULL: goes on if it can */
    for (size_t i = 0; i < t->n_events; i++) {
        const json_t *e = t->event[i];
        struct export_tokens k;
        if (trace_is(e, "context"))
            why = s.n > 0 || s.open ? "context" : why;
        if (!trace_is(e, "response"))
            continue;
        if (export_tokens_at(e, tokens, &k, err) != OK) {
            samples_drop(&s);
            return err->code;
        }
        if (k.n_output == 0)
            continue;
        if (why == NULL && !extends(&s.now, &k))
            why = "prompt";
        if (why != NULL)
            sample_begin(&s, why, e, &k);
        answer_add(&s, e, &k);
        why = NULL;
    }
    sample_write(&s);
    *ret_n = s.n;
    return OK;
}
