/* A datagram of a runner, whose process a candidate shares. */
#include <string.h>

#include "harness/runner.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ca_msg m;
    uint32_t seq = 7;
    if (size >= sizeof m && data[size - 1] % 2) /* half of them: the right one */
        memcpy(&seq, data + offsetof(struct ca_msg, seq), sizeof seq);
    if (!runner_message(data, size, seq, &m))
        return 0;
    if (size != sizeof m || m.magic != CA_MSG_MAGIC || m.seq != seq ||
        memchr(m.text, 0, sizeof m.text) == NULL)
        __builtin_trap();
    for (const char *c = m.text; *c != '\0'; c++)
        if (*c < ' ' || *c > '~')
            __builtin_trap();
    return 0;
}
