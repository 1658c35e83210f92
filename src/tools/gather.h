/* tools/gather.h -- output of a length that nobody knows, kept within bounds.
 *
 * struct gather keeps head and tail in memory and the whole in a spill file, up to its limit;
 * struct ring keeps what came last. Both allocate when the first byte comes.
 */
#ifndef TOOLS_GATHER_H
#define TOOLS_GATHER_H

#include "tools/text.h"
#include "tools/tools.h"

struct gather {
    char *head, *tail; /* owned */
    size_t head_len;
    uint64_t total, spilled;
    int spill_fd; /* owned; -1: none */
    bool spill_tried;
    const char *spill_name; /* in the arena */
    struct arena *arena;
    struct tools *tools;
};

void gather_init(struct gather *g, struct tools *t, struct arena *a);
void gather_add(struct gather *g, struct str bytes);
/* What a model is told of it. `terminal`: as a terminal would show it, else line by line as it is.
 * Gives up the memory. */
void gather_tell(struct gather *g, struct buf *b, bool terminal);
void gather_fini(struct gather *g);

#define RING_BYTES ((size_t)64 << 10)

struct ring {
    char *bytes; /* owned */
    uint64_t total, taken;
};

void ring_add(struct ring *r, struct str bytes);
/* What came since the last time, as far as it is still there; *ret_lost: bytes that are not. In the
 * arena. */
struct str ring_take(struct ring *r, struct arena *a, uint64_t *ret_lost);
void ring_fini(struct ring *r);

#endif
