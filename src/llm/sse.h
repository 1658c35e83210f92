/* llm/sse.h -- server-sent events from bytes that may be cut anywhere.
 *
 * Pull: feed a slice, take events until it asks for more. CRLF, LF and CR end a line; a byte-order
 * mark, comments and unknown fields are passed over; `data` lines of one event are joined with LF.
 * A last event without its blank line counts (sse_end).
 *
 * Includes: core. Errors: SSE_TOO_LONG, for good, when a line or an event passes its ceiling.
 * Memory: the buffers grow in the arena up to the ceiling and are used again.
 */
#ifndef LLM_SSE_H
#define LLM_SSE_H

#include "core/str.h"

struct sse {
    struct buf line, data, name;
    bool after_cr, has_data, begun;
    size_t n_comments;
};

enum sse_got { SSE_MORE, SSE_EVENT, SSE_TOO_LONG };

/* Both slices live until the next call. */
struct sse_event {
    struct str name; /* of the `event` field; "": none */
    struct str data;
};

void sse_init(struct sse *s, struct arena *a, size_t event_max);

/* Takes bytes off the front of *bytes until an event is whole. SSE_MORE: all were taken. */
enum sse_got sse_feed(struct sse *s, struct str *bytes, struct sse_event *ret);

/* No more bytes: the event that lacked its end, once. */
enum sse_got sse_end(struct sse *s, struct sse_event *ret);

#endif
