#include "optimize/keeper.h"

static struct kept *find(const struct keeper *k, const char *hash)
{
    for (size_t i = 0; i < k->n; i++)
        if (strcmp(k->all[i].hash, hash) == 0)
            return &k->all[i];
    return NULL;
}

const struct kept *keeper_find(const struct keeper *k, const char *hash)
{
    return find(k, hash);
}

void keeper_add(struct keeper *k, const struct verdict *v, bool full)
{
    struct verdict *copy = arena_new(k->arena, struct verdict, 1);
    *copy = *v;
    struct kept *at = find(k, v->candidate_hash);
    if (at == NULL) {
        if (k->n == k->cap) {
            size_t cap = k->cap ? k->cap * 2 : 32;
            struct kept *more = arena_new(k->arena, struct kept, cap);
            if (k->n > 0)
                memcpy(more, k->all, k->n * sizeof *more);
            k->all = more;
            k->cap = cap;
        }
        at = &k->all[k->n++];
    }
    memcpy(at->hash, v->candidate_hash, sizeof at->hash);
    at->v = copy;
    at->full = full;
}

const struct kept *keeper_best(const struct keeper *k, enum keeper_among among)
{
    const struct kept *best = NULL;
    for (size_t i = 0; i < k->n; i++) {
        const struct kept *e = &k->all[i];
        double us = e->v->time_us[ARM_CANDIDATE].median;
        if (!verdict_right(e->v) || !(us > 0) || (among == AMONG_FULL && !e->full))
            continue;
        if (best == NULL || us < best->v->time_us[ARM_CANDIDATE].median)
            best = e;
    }
    return best;
}

/* Only times are bound to a machine, and only a verdict that ran there names one. */
static bool is_foreign(const struct verdict *v, const struct verdict *now)
{
    if (v->device_uuid[0] == '\0' || now->device_uuid[0] == '\0')
        return false;
    return strcmp(v->device_uuid, now->device_uuid) != 0 ||
           strcmp(v->torch_version, now->torch_version) != 0;
}

size_t keeper_forget_foreign(struct keeper *k, const struct verdict *now)
{
    size_t stay = 0, before = k->n;
    for (size_t i = 0; i < k->n; i++)
        if (!is_foreign(k->all[i].v, now))
            k->all[stay++] = k->all[i];
    k->n = stay;
    return before - stay;
}
