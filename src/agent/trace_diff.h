/* agent/trace_diff.h -- two texts as the shortest way from one to the other, line by line.
 *
 * Pure. Myers, "An O(ND) Difference Algorithm and Its Variations", 1986; past a bound of
 * changes what is between the common head and tail is told as removed and added.
 */
#ifndef AGENT_TRACE_DIFF_H
#define AGENT_TRACE_DIFF_H

#include "core/str.h"

/* As `diff -u` writes it, with 3 lines around; nothing for equal texts. Returns whether they
 * differ. */
bool diff_unified(struct str before, struct str after, struct buf *b);

#endif
