/* An answer of an endpoint. The first byte: the dialect, and where the rest is cut in two. */
#include "core/json.h"
#include "llm/assembly.h"
#include "llm/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static json_t *reply_to(struct arena *a, enum dialect d, struct str bytes, size_t cut,
                        struct reply *ret)
{
    struct assembly_spec spec = { .dialect = d, .streamed = true, .bytes_max = 1 << 16 };
    struct assembly *as = assembly_create(a, &spec);
    if (assembly_feed(as, (struct str){ bytes.ptr, cut }))
        assembly_feed(as, (struct str){ bytes.ptr + cut, bytes.len - cut });
    assembly_end(as, ret);
    return reply_json(ret);
}

/* What stands for each reply, whatever came. */
static void check(const struct reply *r)
{
    if ((r->end == REPLY_FAILED || r->end == REPLY_CUT) != (r->fault.kind != FAULT_NONE) &&
        r->end != REPLY_REFUSED)
        __builtin_trap();
    if (r->n_calls > 0 && r->end != REPLY_STOP && r->end != REPLY_PAUSED)
        __builtin_trap();
    for (size_t i = 0; i < r->n_calls; i++) {
        const struct reply_call *c = &r->calls[i];
        own_json args = json_loadb(c->args.ptr, c->args.len, 0, NULL);
        if (c->id.len == 0 || c->broken == json_is_object(args))
            __builtin_trap();
    }
}

/* Whatever was answered can be sent back. */
static void send_back(const struct reply *r)
{
    struct compat compat = compat_for(DIALECT_ANTHROPIC, S("http://h"), S("m"));
    const struct chat_sampling sampling = { .max_tokens = 1 };
    const struct chat chat = { .messages = &r->message, .n_messages = 1 };
    for (int d = DIALECT_OPENAI; d <= DIALECT_ANTHROPIC; d++) {
        struct request q = { .dialect = (enum dialect)d,
                             .model = "m",
                             .compat = &compat,
                             .chat = &chat,
                             .sampling = &sampling };
        struct err err = { 0 };
        own_json j = NULL;
        if (request_write(&q, &j, &err) != OK)
            __builtin_trap();
        own_mem char *z = json_dumps(j, 0);
        if (z == NULL)
            __builtin_trap();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    own_arena a = { 0 };
    struct reply whole, halves;
    if (size == 0)
        return 0;
    enum dialect d = data[0] % 2 ? DIALECT_ANTHROPIC : DIALECT_OPENAI;
    struct str bytes = { (const char *)data + 1, size - 1 };
    own_json one = reply_to(&a, d, bytes, bytes.len, &whole);
    own_json two = reply_to(&a, d, bytes, bytes.len * data[0] / 256, &halves);
    if (!json_equal(one, two))
        __builtin_trap();
    check(&whole);
    send_back(&whole);
    return 0;
}
