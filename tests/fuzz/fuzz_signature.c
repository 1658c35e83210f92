/* The worker's answer as JSON, and the signature in it. */
#include "core/json.h"
#include "core/own.h"
#include "task/task.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    own_arena a = { 0 };
    own_json j = NULL;
    struct err err = { 0 };
    struct signature sig;
    struct buf text = { .arena = &a, .max = 1 << 20 };
    if (json_parse((struct str){ (const char *)data, size }, 1 << 20, &j, &err) == OK &&
        signature_parse(&a, j, &sig, &err) == OK)
        signature_print(&sig, &text);
    return 0;
}
