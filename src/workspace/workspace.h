/* workspace/workspace.h -- the directory that an author works in.
 *
 *   model.py      the task, a frozen copy
 *   kernels/      the candidate: the author's only folder
 *   cuda_agent.h  the contract, for reading and for editors; a build uses its own copy
 *   README.md     how to work here
 * and for the torch contract, in the place of cuda_agent.h, what a published CUDA-Agent work folder
 * has: binding.cpp, binding_registry.h, utils/; the candidate is model_new.py and kernels/.
 *
 * What lies here is input, never truth: the harness keeps the task and the best candidate.
 * Errors: ERR_SYSTEM, ERR_MISSING (the product's own files), ERR_FORMAT (what was found).
 */
#ifndef WORKSPACE_WORKSPACE_H
#define WORKSPACE_WORKSPACE_H

#include "task/task.h"

/* Make the directory or mend it: frozen files are written anew, kernels/ is left as it is. */
MUST_USE
enum err_code workspace_lay(const char *dir, const struct task *task, enum contract contract,
                            struct err *err);

/* Put the candidate's files in the place of DIR/kernels: all of them or none; then model_new.py. */
MUST_USE
enum err_code workspace_put(const char *dir, const struct candidate *c, struct err *err);

/* Move the folder `fresh` into the place of the folder `place` (same file system), in one
 * step where the file system can, and remove what was there. */
MUST_USE
enum err_code workspace_place(const char *fresh, const char *place, struct err *err);

/* Read DIR/kernels back (candidate_read) after a look at model.py: ERR_STATE when it is
 * not the task any more. */
MUST_USE
enum err_code workspace_get(struct arena *a, const char *dir, const struct task *task,
                            enum target target, struct candidate *ret, struct err *err);

#endif
