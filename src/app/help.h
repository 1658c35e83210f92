/* app/help.h -- help, documentation, completion: all read from the command table. */
#ifndef APP_HELP_H
#define APP_HELP_H

#include <stdio.h>

#include "app/cmd.h"

void help_all(FILE *out);
void help_command(const struct cmd *cmd, FILE *out);
void help_markdown(FILE *out);
void help_bash(FILE *out);
void help_man(FILE *out);

const char *help_nearest(const char *name); /* the command that was perhaps meant, or NULL */

#endif
