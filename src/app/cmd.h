/* app/cmd.h -- a command is a row: name, operands, options, help, examples, run.
 *
 * Each cmd_*.c exports one `const struct cmd cmd_x`; main.c lists them. Options are
 * bound to static variables of that file, so that --help, docs/cli.md, completion
 * and configuration (flag > environment > project file > user file) read one table.
 */
#ifndef APP_CMD_H
#define APP_CMD_H

#include "core/field.h"

struct cmd {
    const char *name;     /* "grade", "task check" */
    const char *operands; /* "WORKDIR" */
    const char *summary;  /* one line */
    const char *details;  /* paragraphs and examples for --help; may be NULL */
    const struct field *fields;
    size_t n_fields;
    /* args: operands only. *ret_status is the exit status of a command that did its
     * work (0, or 1 for a verdict that is no pass). */
    enum err_code (*run)(struct args args, int *ret_status, struct err *err);
};

extern const struct cmd *const cmds[]; /* NULL-terminated; main.c */

#endif
