/* core/field.h -- typed rows that bind names to variables.
 *
 * The same rows serve command lines, configuration and help text. The caller's
 * initial values are the defaults. Unknown, repeated and out-of-range are refused.
 */
#ifndef CORE_FIELD_H
#define CORE_FIELD_H

#include "core/err.h"
#include "core/str.h"

enum field_kind { FIELD_IS_FLAG, FIELD_IS_INT, FIELD_IS_REAL, FIELD_IS_TEXT, FIELD_IS_CHOICE };

struct field {
    const char
        *name; /* "wall_ms"; on a command line --wall-ms, in the environment CUDA_AGENT_WALL_MS */
    const char *help; /* one line, with the unit */
    enum field_kind kind;
    double min, max;            /* numbers only, inclusive */
    const char *const *choices; /* FIELD_IS_CHOICE: NULL-terminated */
    union {
        bool *flag;
        int64_t *integer;
        double *real;
        struct str *text;
        int *choice; /* index into choices */
    } to;
};

#define FIELD_FLAG(n, p, h)                                             \
    {                                                                   \
        .name = (n), .help = (h), .kind = FIELD_IS_FLAG, .to.flag = (p) \
    }
#define FIELD_INT(n, p, lo, hi, h)                                                \
    {                                                                             \
        .name = (n), .help = (h), .kind = FIELD_IS_INT, .min = (lo), .max = (hi), \
        .to.integer = (p)                                                         \
    }
#define FIELD_REAL(n, p, lo, hi, h)                                                               \
    {                                                                                             \
        .name = (n), .help = (h), .kind = FIELD_IS_REAL, .min = (lo), .max = (hi), .to.real = (p) \
    }
#define FIELD_TEXT(n, p, h)                                             \
    {                                                                   \
        .name = (n), .help = (h), .kind = FIELD_IS_TEXT, .to.text = (p) \
    }
#define FIELD_CHOICE(n, p, c, h)                                                            \
    {                                                                                       \
        .name = (n), .help = (h), .kind = FIELD_IS_CHOICE, .choices = (c), .to.choice = (p) \
    }

/* Find by name; '-' and '_' are the same. NULL is normal. */
const struct field *field_find(const struct field *fields, size_t n, struct str name);

/* Parse `value` into the row's target. `value` must outlive a text target.
 * ERR_USAGE says what is wrong and what would be right. */
MUST_USE
enum err_code field_set(const struct field *f, struct str value, struct err *err);

/* Operands and options of one command. */
struct args {
    int n;
    char **v;
};

/* Take every --name value, --name=value and --flag (also --no-flag) out of *args,
 * leave the operands in order; "--" ends the options. ERR_USAGE names the offender. */
MUST_USE
enum err_code args_options(struct args *args, const struct field *fields, size_t n,
                           struct err *err);

#endif
