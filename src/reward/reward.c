#include "reward/reward.h"

static bool clears(const struct ratio *r)
{
    return r->lo > MILESTONE_RATIO;
}

/* A baseline that was not measured has a ratio of 0 and so is never beaten. */
int reward_milestone(const struct verdict *v, enum against against)
{
    if (v->status == VERDICT_UNDECIDED)
        return 1;
    if (v->status != VERDICT_PASS)
        return -1;
    if (!clears(&v->vs_eager))
        return 1;
    bool all = clears(&v->vs_compile) && (against == AGAINST_PAPER || clears(&v->vs_best));
    return all ? 3 : 2;
}

double reward_speedup(const struct verdict *v)
{
    return v->status == VERDICT_PASS ? v->vs_compile.median : 0;
}
