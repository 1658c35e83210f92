/* playbook/playbook.h -- the built-in author: no model, no network.
 *
 * trace -> terms (lower) -> algebra (rewrite) -> kernels (plan) -> source (templates) -> knobs
 * (tune). ERR_TASK names what it does not know.
 */
#ifndef PLAYBOOK_PLAYBOOK_H
#define PLAYBOOK_PLAYBOOK_H

#include "task/author.h"

extern const struct author_ops playbook_author;

#endif
