#include "core/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

#define BLOCK_MIN ((size_t)64 << 10)
#define ALIGN ((size_t)16)

struct arena_block {
    struct arena_block *prev;
    size_t cap, used; /* bytes after the header */
    _Alignas(16) unsigned char bytes[];
};

static _Noreturn void out_of_memory(size_t n, size_t size)
{
    fprintf(stderr, "arena: no room for %zu x %zu bytes\n", n, size);
    abort();
}

static struct arena_block *block_add(struct arena *a, size_t need)
{
    size_t cap = need > BLOCK_MIN ? need : BLOCK_MIN;
    struct arena_block *b = malloc(sizeof *b + cap);
    if (b == NULL)
        out_of_memory(1, need);
    b->prev = a->last;
    b->cap = cap;
    b->used = 0;
    ASAN_POISON_MEMORY_REGION(b->bytes, cap);
    a->last = b;
    return b;
}

void *arena_alloc(struct arena *a, size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes) || bytes > (size_t)1 << 40)
        out_of_memory(n, size);
    size_t need = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    if (need == 0)
        need = ALIGN;
    struct arena_block *b = a->last;
    if (b == NULL || b->cap - b->used < need)
        b = block_add(a, need);
    void *p = b->bytes + b->used;
    ASAN_UNPOISON_MEMORY_REGION(p, need);
    b->used += need;
    a->used += bytes;
    memset(p, 0, need);
    return p;
}

struct arena_mark arena_mark(const struct arena *a)
{
    return (struct arena_mark){ a->last, a->last ? a->last->used : 0, a->used };
}

void arena_rewind(struct arena *a, struct arena_mark mark)
{
    while (a->last != mark.block) {
        struct arena_block *gone = a->last;
        a->last = gone->prev;
        ASAN_UNPOISON_MEMORY_REGION(gone->bytes, gone->cap);
        free(gone);
    }
    if (a->last != NULL) {
        a->last->used = mark.block_used;
        ASAN_POISON_MEMORY_REGION(a->last->bytes + mark.block_used, a->last->cap - mark.block_used);
    }
    a->used = mark.used;
}

void arena_fini(struct arena *a)
{
    arena_rewind(a, (struct arena_mark){ 0 });
}
