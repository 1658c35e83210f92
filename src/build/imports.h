/* build/imports.h -- what a shared object wants from outside, against a list.
 *
 * A speed bump, not the wall (the box is): it keeps candidates to the contract's
 * libraries and answers with a name. The reader trusts no offset of the file.
 */
#ifndef BUILD_IMPORTS_H
#define BUILD_IMPORTS_H

#include "core/err.h"
#include "core/str.h"

/* torch: an extension for Python and PyTorch, which may want more, but none of PyTorch's own
 * operators beyond memory. *ret_offender: the first symbol or library that is not allowed, NULL
 * when none. */
MUST_USE
enum err_code imports_check(struct arena *a, const char *so_path, bool torch,
                            const char **ret_offender, struct err *err);

bool import_allowed(const char *symbol);
bool library_allowed(const char *soname);
bool torch_import_allowed(const char *symbol); /* in its place for extensions */

#endif
