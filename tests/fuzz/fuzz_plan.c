/* Where the worker says that values lie, against a signature that asks for them. */
#include <unistd.h>

#include "core/json.h"
#include "core/own.h"
#include "harness/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct value_sig value[3] = {
        { .name = "x",
          .kind = 1,
          .rank = 2,
          .alias = -1,
          .shape = { 4, 8 },
          .stride = { 8, 1 },
          .bytes = 128 },
        { .name = "w",
          .kind = 1,
          .rank = 1,
          .alias = -1,
          .shape = { 8 },
          .stride = { 1 },
          .bytes = 32 },
        { .name = "out",
          .kind = 1,
          .rank = 2,
          .alias = -1,
          .shape = { 4, 8 },
          .stride = { 8, 1 },
          .bytes = 128 },
    };
    const struct signature sig = { { 1, &value[0] }, { 1, &value[1] }, { 1, &value[2] } };
    own_json j = NULL;
    struct err err = { 0 };
    uint64_t bytes = 0;
    int fd = -1, sets = 0;
    if (json_parse((struct str){ (const char *)data, size }, 1 << 20, &j, &err) == OK &&
        plan_make(&sig, j, &fd, &bytes, &sets, &err) == OK)
        close(fd);
    return 0;
}
