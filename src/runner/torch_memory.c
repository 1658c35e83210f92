#include "runner/torch_memory.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "device/vmm.h"

#define ROUND 512
#define CALL_MAX 1024 /* allocations of a call that are followed */
#define OUT_MAX 64

/* A block that torch gave back, for the next that wants its size on its stream. */
struct block {
    struct block *next;
    uint64_t at, bytes;
    void *stream;
};

struct place {
    uint64_t at, bytes;
    int ordinal; /* of the allocation that becomes this output; -1: not known */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block *idle;
static struct place out[OUT_MAX];
static int n_out;
static bool calling;
static struct {
    uint64_t at, bytes;
} made[CALL_MAX];
static int n_made;

static uint64_t rounded(uint64_t bytes)
{
    return (bytes + ROUND - 1) / ROUND * ROUND;
}

static void give_all_back(void)
{
    while (idle != NULL) {
        struct block *b = idle;
        idle = b->next;
        vmm_plain_free(b->at);
        free(b);
    }
}

static uint64_t fresh(uint64_t bytes, void *stream)
{
    uint64_t at = 0;
    for (struct block **b = &idle; *b != NULL; b = &(*b)->next)
        if ((*b)->bytes == bytes && (*b)->stream == stream) {
            struct block *found = *b;
            *b = found->next;
            at = found->at;
            free(found);
            return at;
        }
    if (vmm_plain_alloc(bytes, &at) == 0)
        return at;
    vmm_synchronize();
    give_all_back();
    return vmm_plain_alloc(bytes, &at) == 0 ? at : 0;
}

/* The place of the output that this allocation became in the call before. */
static uint64_t planned(uint64_t bytes)
{
    for (int i = 0; i < n_out; i++)
        if (out[i].ordinal == n_made && out[i].bytes == bytes)
            return out[i].at;
    return 0;
}

void *torch_memory_alloc(ssize_t bytes, int device, void *stream)
{
    (void)device;
    if (bytes <= 0 || vmm_enter() != 0) /* any thread may ask */
        return NULL;
    pthread_mutex_lock(&lock);
    uint64_t at = calling ? planned((uint64_t)bytes) : 0;
    if (at == 0)
        at = fresh(rounded((uint64_t)bytes), stream);
    if (calling && n_made < CALL_MAX) {
        made[n_made].at = at;
        made[n_made++].bytes = (uint64_t)bytes;
    }
    pthread_mutex_unlock(&lock);
    return (void *)(uintptr_t)at;
}

static bool is_output(uint64_t at)
{
    for (int i = 0; i < n_out; i++)
        if (out[i].at == at)
            return true;
    return false;
}

void torch_memory_free(void *pointer, ssize_t bytes, int device, void *stream)
{
    uint64_t at = (uint64_t)(uintptr_t)pointer;
    (void)device;
    if (at == 0 || bytes <= 0)
        return;
    pthread_mutex_lock(&lock);
    struct block *b = is_output(at) ? NULL : malloc(sizeof *b);
    if (b != NULL) {
        *b = (struct block){ idle, at, rounded((uint64_t)bytes), stream };
        idle = b;
    }
    pthread_mutex_unlock(&lock);
}

void torch_memory_reset(void)
{
    for (int i = 0; i < OUT_MAX; i++)
        out[i].ordinal = -1;
}

void torch_memory_begin(const struct ca_list *list, const uint64_t *bytes)
{
    n_out = list->n < OUT_MAX ? list->n : OUT_MAX;
    for (int i = 0; i < n_out; i++) {
        out[i].at = (uint64_t)(uintptr_t)list->v[i].data;
        out[i].bytes = bytes[i];
    }
    n_made = 0;
    calling = true;
}

void torch_memory_end(const uint64_t *result)
{
    calling = false;
    for (int i = 0; i < n_out; i++) {
        if (result[i] == out[i].at)
            continue;
        out[i].ordinal = -1;
        for (int k = 0; k < n_made; k++)
            if (made[k].at == result[i] && made[k].bytes == out[i].bytes)
                out[i].ordinal = k;
    }
}
