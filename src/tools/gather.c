#include "tools/gather.h"

#include <stdlib.h>
#include <unistd.h>

#include "core/own.h"
#include "tools/tools_int.h"

#define HEAD_BYTES ((size_t)TEXT_RESULT_MAX)
#define TAIL_BYTES (HEAD_BYTES / 2)

void gather_init(struct gather *g, struct tools *t, struct arena *a)
{
    *g = (struct gather){ .spill_fd = -1, .arena = a, .tools = t };
}

/* Into a ring of `cap` bytes that has seen `total` before. */
static void ring_put(char *ring, size_t cap, uint64_t total, struct str s)
{
    if (s.len > cap) {
        total += s.len - cap;
        s = str_drop(s, s.len - cap);
    }
    size_t at = (size_t)(total % cap), first = cap - at < s.len ? cap - at : s.len;
    memcpy(ring + at, s.ptr, first);
    memcpy(ring, s.ptr + first, s.len - first);
}

/* The last n bytes of a ring that has seen `total`. */
static void ring_copy(const char *ring, size_t cap, uint64_t total, size_t n, char *ret)
{
    size_t at = (size_t)((total - n) % cap), first = cap - at < n ? cap - at : n;
    memcpy(ret, ring + at, first);
    memcpy(ret + first, ring, n - first);
}

static void spill(struct gather *g, struct str s)
{
    if (g->spilled + s.len > SPILL_BYTES_MAX)
        s.len = (size_t)(SPILL_BYTES_MAX - g->spilled);
    while (g->spill_fd >= 0 && s.len > 0) {
        ssize_t n = write(g->spill_fd, s.ptr, s.len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return; /* a full disk: the spill says how far it goes */
        g->spilled += (uint64_t)n;
        s = str_drop(s, (size_t)n);
    }
}

/* It does not fit: from here on tail and spill, too. */
static void overflow(struct gather *g)
{
    struct str head = { g->head, g->head_len };
    g->spill_tried = true;
    g->spill_fd = spill_new(g->tools, g->arena, &g->spill_name);
    spill(g, head);
    g->tail = malloc(TAIL_BYTES);
    if (g->tail != NULL)
        ring_put(g->tail, TAIL_BYTES, g->total - head.len, head);
}

void gather_add(struct gather *g, struct str s)
{
    if (s.len == 0)
        return;
    if (g->head == NULL && (g->head = malloc(HEAD_BYTES)) == NULL) {
        g->total += s.len;
        return;
    }
    size_t room = HEAD_BYTES - g->head_len, n = s.len < room ? s.len : room;
    memcpy(g->head + g->head_len, s.ptr, n);
    g->head_len += n;
    g->total += n;
    s = str_drop(s, n);
    if (s.len == 0)
        return;
    if (!g->spill_tried)
        overflow(g);
    spill(g, s);
    if (g->tail != NULL)
        ring_put(g->tail, TAIL_BYTES, g->total, s);
    g->total += s.len;
}

static void show(struct buf *b, struct str s, bool terminal)
{
    struct str line;
    if (terminal) {
        text_terminal(b, s);
        return;
    }
    while (s.len > 0) {
        bool ended = memchr(s.ptr, '\n', s.len) != NULL;
        str_cut(&s, '\n', &line);
        text_line(b, line);
        buf_addz(b, ended ? "\n" : "");
    }
}

void gather_tell(struct gather *g, struct buf *b, bool terminal)
{
    struct str all = { g->head ? g->head : "", g->head_len };
    if (text_binary(all)) {
        show(b, text_head(all, 200), terminal);
        buf_addf(b, "\n[binary output, %llu bytes; the first 200 are shown]",
                 (unsigned long long)g->total);
    } else if (g->total <= HEAD_BYTES || g->tail == NULL) {
        show(b, all, terminal);
    } else {
        char *copy = arena_new(g->arena, char, TAIL_BYTES);
        ring_copy(g->tail, TAIL_BYTES, g->total, TAIL_BYTES, copy);
        struct str head = text_head(all, TAIL_BYTES);
        struct str tail = text_tail((struct str){ copy, TAIL_BYTES }, TAIL_BYTES);
        show(b, head, terminal);
        buf_addf(b, "\n[... %llu bytes left out",
                 (unsigned long long)(g->total - head.len - tail.len));
        if (g->spill_fd >= 0)
            buf_addf(b, "; %s is in %s, for Read and Grep",
                     g->spilled == g->total ? "the whole output" : "its beginning", g->spill_name);
        buf_addz(b, " ...]\n");
        show(b, tail, terminal);
    }
    gather_fini(g);
}

void gather_fini(struct gather *g)
{
    free(g->head);
    free(g->tail);
    own_fd_drop(&g->spill_fd);
    *g = (struct gather){ .spill_fd = -1, .arena = g->arena, .tools = g->tools };
}

void ring_add(struct ring *r, struct str s)
{
    if (r->bytes == NULL)
        r->bytes = malloc(RING_BYTES);
    if (r->bytes != NULL && s.len > 0)
        ring_put(r->bytes, RING_BYTES, r->total, s);
    r->total += s.len;
}

struct str ring_take(struct ring *r, struct arena *a, uint64_t *ret_lost)
{
    uint64_t fresh = r->total - r->taken;
    size_t n = r->bytes == NULL ? 0 : fresh < RING_BYTES ? (size_t)fresh : RING_BYTES;
    char *copy = arena_new(a, char, n + 1);
    if (n > 0)
        ring_copy(r->bytes, RING_BYTES, r->total, n, copy);
    *ret_lost = fresh - n;
    r->taken = r->total;
    return (struct str){ copy, n };
}

void ring_fini(struct ring *r)
{
    free(r->bytes);
    r->bytes = NULL;
}
