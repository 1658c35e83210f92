/* app/config.h -- options from outside the command line.
 *
 * flag > environment (CUDA_AGENT_<OPTION>) > project file (cuda-agent.yaml, found from the
 * working directory upward) > user file (~/.config/cuda-agent/config.yaml) > default. A
 * file is one flat mapping of option names; a key that no command has is an error.
 */
#ifndef APP_CONFIG_H
#define APP_CONFIG_H

#include "app/cmd.h"

/* Set the command's options from files and environment; the flags come after. */
MUST_USE
enum err_code config_apply(const struct cmd *cmd, struct err *err);

/* Where an option's value comes from, for `config show`: "default", a path with a line, or
 * the variable's name. Texts live as long as the process. */
MUST_USE
enum err_code config_origin(const struct field *f, const char **ret_origin, const char **ret_value,
                            struct err *err);

#endif
