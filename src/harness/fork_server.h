/* harness/fork_server.h -- the Python process whose forks run torch candidates.
 *
 * Trusted and outside of any box, like the examiner: it loads torch and our own code
 * (py/forkserver), has no seed and never sees a candidate; what it forks enters a box before
 * anything foreign is loaded (sandbox/box.h). It ends with its socket.
 */
#ifndef HARNESS_FORK_SERVER_H
#define HARNESS_FORK_SERVER_H

#include "core/err.h"
#include "core/str.h"
#include "task/candidate.h"

struct fork_server;

struct fork_server_config {
    const char *python; /* absolute */
    enum target target;
    int threads;
    bool bind;       /* cpu: OpenMP's threads get a core each */
    struct str task; /* source of the task: its forks ask it for arguments, in their boxes */
};

/* Returns at once; torch is loaded meanwhile (seconds). ERR_SYSTEM, ERR_MISSING. */
MUST_USE
enum err_code fork_server_open(const struct fork_server_config *cfg, struct fork_server **ret,
                               struct err *err);
int fork_server_socket(const struct fork_server *f); /* for box_spec.fork_server */
/* What it wrote to stderr when it is gone, "" while it lives. Borrowed. */
const char *fork_server_last_words(struct fork_server *f);
void fork_server_close(struct fork_server *f); /* NULL is fine */

#endif
