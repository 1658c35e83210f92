/* sandbox/probes.h -- attempts to leave a box, made inside of one; 0: the wall held. */
#ifndef SANDBOX_PROBES_H
#define SANDBOX_PROBES_H

#include "sandbox/box.h"

extern int rung;         /* outside: of box_probe; inside: told */
extern const char *lair; /* outside the box, mode 0777, with "file" (0666) and "socket" */

struct probe {
    const char *name;
    int (*run)(void);
    enum box_role role;
    int rung;   /* only there; 0: everywhere */
    bool apart; /* a test of its own runs it: more than its exit counts */
};
extern const struct probe probes[];
extern const size_t n_probes;

int probe_main(const char *name); /* 99: no such probe */

#endif
