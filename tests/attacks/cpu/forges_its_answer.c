// want: wrong tampered crashed timeout
// hacks 52: sends `done` itself, from a thread, over the runner's socket
#include "row.h"

/* Sends answers of its own on descriptor 3, then computes nothing. */
struct forged {
    uint32_t magic, op, seq;
    int32_t status;
    uint64_t a, b, c;
    char text[256];
    uint16_t set[256];
};

static long raw_write(int fd, const void *p, unsigned long n)
{
    long r;
    __asm__ volatile("syscall"
                     : "=a"(r)
                     : "a"(1L), "D"((long)fd), "S"(p), "d"(n)
                     : "rcx", "r11", "memory");
    return r;
}

int ca_forward(const struct ca_call *c)
{
    static struct forged f = { 0x43414d31u, 7, 0, 0, 1, 0, 0, "", { 0 } };
    (void)c;
    for (uint32_t s = 1; s < 64; s++) {
        f.seq = s;
        raw_write(3, &f, sizeof f);
    }
    return 0;
}
