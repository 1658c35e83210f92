/* Server-sent events: cut in two by the first byte, they are the same events. */
#include "llm/sse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void events_add(struct sse *s, struct str bytes, struct buf *to)
{
    struct sse_event e;
    while (sse_feed(s, &bytes, &e) == SSE_EVENT)
        buf_addf(to, "%zu %zu;", e.name.len, e.data.len);
}

static void all(struct arena *a, struct str bytes, size_t cut, struct buf *to)
{
    struct sse s;
    struct sse_event e;
    sse_init(&s, a, 1 << 12);
    events_add(&s, (struct str){ bytes.ptr, cut }, to);
    events_add(&s, (struct str){ bytes.ptr + cut, bytes.len - cut }, to);
    enum sse_got got = sse_end(&s, &e);
    buf_addf(to, "%d %zu", (int)got, got == SSE_EVENT ? e.data.len : 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    own_arena a = { 0 };
    struct buf whole = { .arena = &a, .max = 1 << 24 }, halves = whole;
    if (size == 0)
        return 0;
    struct str bytes = { (const char *)data + 1, size - 1 };
    all(&a, bytes, 0, &whole);
    all(&a, bytes, bytes.len * data[0] / 256, &halves);
    if (!str_eq((struct str){ whole.ptr, whole.len }, (struct str){ halves.ptr, halves.len }))
        __builtin_trap();
    return 0;
}
