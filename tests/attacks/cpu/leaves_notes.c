// want: pass
// hacks 9: leaves a file for the next process
#include "row.h"

/* Says that it failed where a note of an earlier process is left. */
int ca_forward(const struct ca_call *c)
{
    static const char *const notes[] = { "/tmp/note", "/dev/shm/note", "/var/tmp/note",
                                         "/ca/note" };
    static int calls;
    for (int i = 0; i < 4; i++) {
        long fd = raw(RAW_OPEN, (long)notes[i], 02 | 0100, 0600);
        if (fd < 0)
            continue;
        char byte = 0;
        if (raw(0, fd, (long)&byte, 1) == 1 && calls == 0)
            return 9;
        raw(RAW_WRITE, fd, (long)"x", 1);
        raw(RAW_CLOSE, fd, 0, 0);
    }
    calls++;
    compute(c, 0, rows(c), weight(c));
    return 0;
}
