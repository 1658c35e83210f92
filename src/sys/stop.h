/* sys/stop.h -- ^C as a flag.
 *
 * stop_install() catches SIGINT and SIGTERM; long work asks stop_asked() between
 * steps and returns ERR_INTERRUPT. A second ^C kills the process group at once.
 */
#ifndef SYS_STOP_H
#define SYS_STOP_H

#include <stdbool.h>

#include "core/err.h"

void stop_install(void);
bool stop_asked(void);
MUST_USE
enum err_code stop_check(struct err *err); /* ERR_INTERRUPT when asked */

#endif
