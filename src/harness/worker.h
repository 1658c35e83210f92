/* harness/worker.h -- the Python worker: a boxed process that answers docs/worker.md.
 *
 * Trusted for values, not with the machine. Errors: ERR_TASK and ERR_MISSING as the
 * worker says, ERR_CUDA for the machine's faults, ERR_WORKER when it died or broke the
 * protocol, ERR_TIMEOUT when it did not answer in time (it is dead then).
 */
#ifndef HARNESS_WORKER_H
#define HARNESS_WORKER_H

#include <jansson.h>
#include <stdbool.h>

#include "core/arena.h"
#include "core/err.h"
#include "task/candidate.h"

struct worker;

struct worker_config {
    const char *python; /* absolute */
    enum target target;
    int threads;
    const char *cache_dir; /* writable by it alone: what Inductor and Triton keep */
    bool bind;             /* cpu: OpenMP's threads get a core each */
};

MUST_USE
enum err_code worker_open(const struct worker_config *cfg, struct worker **ret, struct err *err);
void worker_close(struct worker *w); /* NULL is fine */
bool worker_alive(const struct worker *w);

#define WORKER_FDS_MAX 8

struct worker_fds {
    int fd[WORKER_FDS_MAX]; /* owned by the caller */
    size_t n;
};

/* What every Python of the exam has in its environment, appended to env[*n]: the fork server's,
 * too. At most PYTHON_ENV_MAX entries, in the arena. */
#define PYTHON_ENV_MAX 16
void worker_python_env(struct arena *a, enum target target, int threads, bool bind,
                       const char **env, size_t *n);

/* Ask `op` with the members of `args` (stolen; NULL: none). *ret is owned by the
 * caller. fds may be NULL: descriptors are closed then. */
MUST_USE
enum err_code worker_ask(struct worker *w, const char *op, json_t *args, int64_t limit_ms,
                         struct worker_fds *fds, json_t **ret, struct err *err);

/* The folders of its python outside /usr; live as long as w. */
size_t worker_folders(const struct worker *w, const char *const **ret);

/* The folder of Python.h; lives as long as w. */
const char *worker_include(const struct worker *w);

/* The folder of site-packages that holds torch, as the python said; lives as long as w. */
const char *worker_site(const struct worker *w);

#endif
