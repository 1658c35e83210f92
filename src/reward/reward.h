/* reward/reward.h -- verdict to reward: pure functions.
 *
 * Milestone (CUDA Agent, arXiv 2602.24286, section 3.3): -1 when a check fails; 3 when
 * more than 5% faster than both eager and compile; 2 when more than 5% faster than
 * eager; 1 otherwise, where "5% faster" is (t0 - t)/t0 > 5%, that is a ratio t0/t above
 * 1/0.95. Paid on the lower confidence bound of the ratio.
 */
#ifndef REWARD_REWARD_H
#define REWARD_REWARD_H

#include "task/verdict.h"

#define MILESTONE_RATIO (1.0 / 0.95)

int reward_milestone(const struct verdict *v, enum against against);

/* Raw ratio against compile (median), 0 when the verdict is no pass: for the ablation. */
double reward_speedup(const struct verdict *v);

#endif
