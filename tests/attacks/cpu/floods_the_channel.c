// want: pass crashed timeout
// hacks 52, 58: floods the runner's socket with datagrams of every size
#include "row.h"

/* sendto with MSG_DONTWAIT: what does not fit is dropped. */
int ca_forward(const struct ca_call *c)
{
    static char junk[4096];
    for (int i = 0; i < 20000; i++) {
        register long r10 __asm__("r10") = 0x40, r8 __asm__("r8") = 0, r9 __asm__("r9") = 0;
        long r;
        memset(junk, i, 64);
        __asm__ volatile("syscall"
                         : "=a"(r)
                         : "a"(44L), "D"(3L), "S"(junk), "d"((long)(i % 4096)), "r"(r10), "r"(r8),
                           "r"(r9)
                         : "rcx", "r11", "memory");
    }
    compute(c, 0, rows(c), weight(c));
    return 0;
}
