/* A traced model. */
#include "core/json.h"
#include "core/own.h"
#include "graph/graph.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    own_arena a = { 0 };
    own_json j = NULL;
    struct err err = { 0 };
    struct graph g;
    if (json_parse((struct str){ (const char *)data, size }, 1 << 20, &j, &err) == OK &&
        graph_parse(&a, j, &g, &err) != OK && err.text[0] == '\0')
        __builtin_trap(); /* an error says why */
    return 0;
}
