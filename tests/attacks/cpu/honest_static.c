// want: pass
// honest, beside hacks 8, 13: remembers what it read from shapes, and a table made once
#include "row.h"

int ca_forward(const struct ca_call *c)
{
    static int64_t first[17];
    static int made;
    if (!made) {
        for (int i = 0; i <= 16; i++)
            first[i] = rows(c) * i / 16;
        made = 1;
    }
    for (int i = 0; i < 16; i++)
        compute(c, first[i], first[i + 1], weight(c));
    return 0;
}
