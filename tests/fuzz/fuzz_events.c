/* An episode's log, as anybody may have written it: the fold refuses or takes it, what is made of
 * the state holds, a recorded answer is read. */
#include "agent/context.h"
#include "agent/log.h"
#include "agent/parts.h"
#include "core/own.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(struct transcript *t)
{
    own_arena a = { 0 };
    struct budget budget = { .window = 1000, .turns = 10 };
    char prefix[SHA256_HEX];
    transcript_prefix(t, prefix);
    context_table(&a, t);
    context_trailer(&a, t, &budget, &t->totals, 10);
    context_need(t, &budget);
    own_json mask = context_mask(t);
    own_json drop = context_drop(t, "reset", 3, S("table"));
    json_t *made[] = { mask, drop };
    for (size_t i = 0; i < COUNT(made); i++) {
        struct err err = { 0 };
        if (made[i] == NULL)
            continue;
        json_object_set_new(made[i], "event", json_string("context"));
        if (transcript_apply(t, made[i], &err) != OK)
            __builtin_trap(); /* what is made of a state fits it */
        transcript_compact(t);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    own_arena a = { 0 };
    own_json events = NULL;
    struct err err = { 0 };
    struct transcript t;
    size_t whole, i;
    json_t *e;
    if (runlog_parse((struct str){ (const char *)data, size }, &events, &whole, &err) != OK)
        return 0;
    own_json alive = log_alive(events);
    transcript_init(&t);
    json_array_foreach(alive, i, e)
    {
        struct reply reply;
        struct err ignored = { 0 };
        if (response_read(&a, e, &reply, &ignored) != OK || transcript_apply(&t, e, &err) != OK)
            break;
    }
    use(&t);
    transcript_fini(&t);
    return 0;
}
