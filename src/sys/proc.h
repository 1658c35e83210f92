/* sys/proc.h -- a trusted child process as data, run to its end.
 *
 * There is no shell anywhere below this: argv reaches execve() as it stands. For
 * programs of ours and of the system (nvidia-smi, gcc --version); whatever is
 * foreign goes through sandbox/box.h instead.
 */
#ifndef SYS_PROC_H
#define SYS_PROC_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/err.h"
#include "core/str.h"

struct proc_spec {
    const char *const *argv; /* NULL-terminated; argv[0] is a path, or a name looked up in PATH */
    const char *const *env;  /* NULL-terminated; NULL: ours */
    const char *dir;         /* working directory; NULL keeps ours */
    int64_t wall_ms;         /* > 0; then SIGKILL to the child's process group */
    size_t out_max;          /* bytes kept of stdout and of stderr, each */
};

struct proc_result {
    int status; /* exit status, or 128 + signal; 127: no such program */
    bool timed_out;
    bool out_cut; /* more than out_max came; the head is kept */
    struct str out, err_out;
    int64_t wall_ms;
};

MUST_USE
enum err_code proc_run(struct arena *a, const struct proc_spec *spec, struct proc_result *ret,
                       struct err *err);

/* Absolute path of `name` in PATH, or NULL. */
const char *proc_find(struct arena *a, const char *name);

#endif
