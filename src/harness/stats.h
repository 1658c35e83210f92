/* harness/stats.h -- medians, intervals and what they allow us to pay: pure functions.
 *
 * Intervals are distribution-free: order statistics around the median (binomial ranks),
 * 95%. Ratios of paired windows are taken window by window, so that what drifts on the
 * machine drifts on both sides.
 */
#ifndef HARNESS_STATS_H
#define HARNESS_STATS_H

#include <stdbool.h>
#include <stddef.h>

#include "task/verdict.h"

#define SAMPLES_MAX 512

struct samples {
    double v[SAMPLES_MAX];
    int n, voids;
};

void samples_add(struct samples *s, double value); /* past SAMPLES_MAX: dropped */

/* Median and its 95% interval; with fewer than 6 samples the interval is min..max. */
struct arm_time stats_time(const struct samples *s);

/* Of base[i] / candidate[i] over the first min(n) pairs. */
struct ratio stats_paired(const struct samples *base, const struct samples *candidate);

/* Of two series that were not taken together: medians, and the corners of both intervals. */
struct ratio stats_apart(const struct arm_time *base, const struct arm_time *candidate);

/* Does the interval leave open on which side of the border the truth is, or would it, were one of
 * the two series taken on a machine `drift` times as fast? Then a second, paired look is due. */
bool stats_touches(const struct ratio *r, double border, double drift);

/* May one stop looking? When the windows lie on one side of the border so plainly that a sign test
 * at 0.001 agrees (Haybittle and Peto: with looks that strict, the last one keeps its 95%). */
bool stats_clear(const struct samples *base, const struct samples *candidate, double border);

/* A baseline that took longer beside a live candidate than alone, by more than 2%, is not believed:
 * the ratio as it were against the quiet time. True when it was changed. */
bool stats_quiet(struct ratio *r, double beside_us, double quiet_us);

/* Do calls help each other? One alone takes more than 1.25 x one among many and `first_us`, what a
 * first call may take honestly: a launch that overlaps nothing, a cold instruction cache, weights
 * to fetch, threads to wake. */
bool stats_help(double alone_us, double together_us, double first_us);

/* (hi - lo) / median; 1 when nothing was measured. */
double stats_width(const struct arm_time *t);

#endif
