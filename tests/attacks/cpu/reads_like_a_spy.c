// want: pass
// hacks 51, 54: looks for files, processes and doors by number
#include "row.h"

/* Looks where secrets would be: the names are not on the list, so by number. All it finds is its
 * own box. */
static long raw3(long n, long a, long b, long d)
{
    long r;
    __asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(d) : "rcx", "r11", "memory");
    return r;
}

int ca_forward(const struct ca_call *c)
{
    compute(c, 0, rows(c), weight(c));
    int bad =
        raw3(2, (long)"/etc/passwd", 0, 0) >= 0 || raw3(2, (long)"/proc/2/mem", 0, 0) >= 0 ||
        raw3(2, (long)"/root", 0, 0) >= 0 || raw3(41, 2, 1, 0) >= 0 /* socket(AF_INET) */ ||
        raw3(101, 16, 1, 0) >= 0 /* ptrace */ || raw3(272, 0x10000000, 0, 0) >= 0 /* unshare */ ||
        raw3(165, 0, 0, 0) >= 0 /* mount */ || raw3(59, (long)"/bin/true", 0, 0) >= 0 /* execve */;
    return bad ? 9 : 0;
}
