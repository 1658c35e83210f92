/* core/err.h -- an error as a value: code, text, birthplace.
 *
 * The caller owns the struct, so raising and adding context cannot fail and needs
 * no free. What the judged program did wrong is a result, never an error.
 * Functions return OK or the code that they raised; outputs are written on OK only.
 */
#ifndef CORE_ERR_H
#define CORE_ERR_H

#include <errno.h>

#define ERR_CODES(X)                                                                              \
    X(ERR_USAGE, "usage", 2)           /* the command line is wrong */                            \
    X(ERR_CONFIG, "config", 3)         /* a configuration value is wrong */                       \
    X(ERR_SYSTEM, "system", 4)         /* a system call failed; see .sys */                       \
    X(ERR_FORMAT, "format", 5)         /* input bytes break their format */                       \
    X(ERR_LIMIT, "limit", 6)           /* a stated bound was exceeded */                          \
    X(ERR_STATE, "state", 7)           /* the object is not where this can be done */             \
    X(ERR_TIMEOUT, "timeout", 8)       /* somebody trusted did not answer in time */              \
    X(ERR_CUDA, "cuda", 9)             /* the device or its driver refused */                     \
    X(ERR_TASK, "task", 10)            /* the task file cannot be run or is not sound */          \
    X(ERR_MISSING, "missing", 11)      /* a compiler, torch, a device or a sandbox is not here */ \
    X(ERR_WORKER, "worker", 12)        /* the trusted worker died or broke its protocol */        \
    X(ERR_INTERRUPT, "interrupt", 130) /* ^C; the state is kept */

enum err_code {
    OK = 0,
#define X(id, name, exit_status) id,
    ERR_CODES(X)
#undef X
};

#define ERR_TEXT_MAX 1024 /* bytes with the NUL; longer text is cut and ends in "..." */
#define ERR_HINT_MAX 512

struct err {
    enum err_code code; /* OK while nothing has failed */
    int sys;            /* errno of the failed call, else 0 */
    const char *file;   /* birthplace; static storage */
    int line;
    char text[ERR_TEXT_MAX]; /* outermost context first: "run job 7: open '/x': ..." */
    char hint[ERR_HINT_MAX]; /* what to do about it, or "" */
};

#define MUST_USE __attribute__((warn_unused_result))
#define FORMAT(f, a) __attribute__((format(printf, f, a)))
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Both return the code, so that `return err_raise(...)` reads as one thought. */
#define err_raise(e, code, ...) err_raise_at((e), __FILE__, __LINE__, (code), 0, __VA_ARGS__)
#define err_sys(e, ...) err_raise_at((e), __FILE__, __LINE__, ERR_SYSTEM, errno, __VA_ARGS__)

enum err_code err_raise_at(struct err *e, const char *file, int line, enum err_code code, int sys,
                           const char *fmt, ...) FORMAT(6, 7);

/* Put "<context>: " before the text of an error that is passing through. */
enum err_code err_within(struct err *e, const char *fmt, ...) FORMAT(2, 3);

/* Say what a person can do about it. Returns e->code. */
enum err_code err_hint(struct err *e, const char *fmt, ...) FORMAT(2, 3);

const char *err_name(enum err_code code);
int err_exit_status(enum err_code code); /* 0 for OK */

#endif
