/* app/python.h -- which python runs the worker: one that imports torch >= 2.4. */
#ifndef APP_PYTHON_H
#define APP_PYTHON_H

#include "core/arena.h"
#include "core/err.h"
#include "core/str.h"

/* Order: `wanted` (--python; must do), CUDA_AGENT_PYTHON (must do), VIRTUAL_ENV, the
 * environment that `make` lays out, python3. Absolute path; ERR_MISSING tells how to mend. */
MUST_USE
enum err_code python_find(struct arena *a, struct str wanted, const char **ret, struct err *err);

#endif
