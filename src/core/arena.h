/* core/arena.h -- memory by lifetime.
 *
 * One arena per lifetime (process, run, grading, turn). Nothing is freed alone;
 * arena_rewind() drops what came after a mark, arena_fini() drops all. Memory is
 * zeroed. Running out aborts with the numbers: every size that the outside world
 * chooses is checked against a limit before it gets here.
 * Threads: one at a time per arena.
 */
#ifndef CORE_ARENA_H
#define CORE_ARENA_H

#include <stddef.h>

struct arena_block;

struct arena {
    struct arena_block *last;
    size_t used; /* bytes handed out since init, without slack */
};

struct arena_mark {
    struct arena_block *block;
    size_t block_used, used;
};

/* {0} is an empty arena; there is no init. */
void arena_fini(struct arena *a);

/* n * size bytes, zeroed, aligned for any type; never NULL, n may be 0. */
void *arena_alloc(struct arena *a, size_t n, size_t size);
#define arena_new(a, type, n) ((type *)arena_alloc((a), (n), sizeof(type)))

struct arena_mark arena_mark(const struct arena *a);
void arena_rewind(struct arena *a, struct arena_mark mark);

#define own_arena __attribute__((cleanup(arena_fini))) struct arena

#endif
