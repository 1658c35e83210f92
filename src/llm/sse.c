#include "llm/sse.h"

void sse_init(struct sse *s, struct arena *a, size_t event_max)
{
    *s = (struct sse){ .line = { .arena = a, .max = event_max },
                       .data = { .arena = a, .max = event_max },
                       .name = { .arena = a, .max = event_max } };
}

static struct str held(const struct buf *b)
{
    return (struct str){ b->ptr ? b->ptr : "", b->len };
}

static void buf_empty(struct buf *b)
{
    b->len = 0;
}

static void field_take(struct sse *s, struct str line)
{
    const char *colon = memchr(line.ptr, ':', line.len);
    struct str key = { line.ptr, colon ? (size_t)(colon - line.ptr) : line.len };
    struct str value = str_drop(line, colon ? key.len + 1 : line.len);
    if (value.len > 0 && value.ptr[0] == ' ')
        value = str_drop(value, 1);
    /* Some proxies put a bare JSON object between events; no field's name begins so. */
    if (line.ptr[0] == '{') {
        key = S("data");
        value = line;
    }
    if (str_eq(key, S("data"))) {
        if (s->has_data)
            buf_addz(&s->data, "\n");
        buf_add(&s->data, value);
        s->has_data = true;
    } else if (str_eq(key, S("event"))) {
        buf_empty(&s->name);
        buf_add(&s->name, value);
    }
}

/* A whole line has come. True when it ends an event. */
static bool line_take(struct sse *s)
{
    struct str line = held(&s->line);
    if (!s->begun && str_starts(line, S("\xef\xbb\xbf")))
        line = str_drop(line, 3);
    s->begun = true;
    buf_empty(&s->line);
    if (line.len == 0) {
        if (!s->has_data)
            buf_empty(&s->name);
        return s->has_data;
    }
    if (line.ptr[0] == ':')
        s->n_comments++;
    else
        field_take(s, line);
    return false;
}

static enum sse_got event_give(struct sse *s, struct sse_event *ret)
{
    *ret = (struct sse_event){ held(&s->name), held(&s->data) };
    s->has_data = false;
    buf_empty(&s->data);
    buf_empty(&s->name);
    return SSE_EVENT;
}

static bool too_long(const struct sse *s)
{
    return s->line.full || s->data.full || s->name.full;
}

enum sse_got sse_feed(struct sse *s, struct str *bytes, struct sse_event *ret)
{
    while (bytes->len > 0 && !too_long(s)) {
        if (s->after_cr && bytes->ptr[0] == '\n') {
            s->after_cr = false;
            *bytes = str_drop(*bytes, 1);
            continue;
        }
        s->after_cr = false;
        size_t n = 0;
        while (n < bytes->len && bytes->ptr[n] != '\n' && bytes->ptr[n] != '\r')
            n++;
        buf_add(&s->line, (struct str){ bytes->ptr, n });
        if (n == bytes->len || s->line.full) {
            *bytes = str_drop(*bytes, n);
            continue;
        }
        s->after_cr = bytes->ptr[n] == '\r';
        *bytes = str_drop(*bytes, n + 1);
        if (line_take(s) && !too_long(s))
            return event_give(s, ret);
    }
    return too_long(s) ? SSE_TOO_LONG : SSE_MORE;
}

enum sse_got sse_end(struct sse *s, struct sse_event *ret)
{
    if (s->line.len > 0)
        line_take(s);
    if (too_long(s))
        return SSE_TOO_LONG;
    return s->has_data ? event_give(s, ret) : SSE_MORE;
}
