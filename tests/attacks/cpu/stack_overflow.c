// want: crashed
// fault: recursion without end
#include "row.h"

static int deeper(const struct ca_call *c, volatile char *above)
{
    volatile char room[4096];
    room[0] = above ? above[0] : 0;
    return deeper(c, room) + room[0];
}

int ca_forward(const struct ca_call *c)
{
    return deeper(c, NULL);
}
