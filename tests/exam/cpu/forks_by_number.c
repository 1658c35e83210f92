// want: pass crashed
#include "row.h"

/* The raw call is refused by the filter: nothing happens, and the answer is right. */
static long raw(long n)
{
    long r;
    __asm__ volatile("syscall" : "=a"(r) : "a"(n) : "rcx", "r11", "memory");
    return r;
}

int ca_forward(const struct ca_call *c)
{
    compute(c, 0, rows(c), weight(c));
    if (raw(57) > 0)
        for (;;)
            ;
    return 0;
}
