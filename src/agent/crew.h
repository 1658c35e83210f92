/* agent/crew.h -- many episodes on one thread: answers, descriptors and times move them, in turn.
 *
 * Each round gives every episode that can move one small step; one that waits costs nothing. At
 * most active_max are open at a time; an ended one is closed and the next one opened, one a round.
 * An episode that fails says so in its log and ends as `error`; the others go on.
 *
 * Errors: ERR_SYSTEM (no descriptors, no memory), what the model's loop raises.
 */
#ifndef AGENT_CREW_H
#define AGENT_CREW_H

#include "agent/episode.h"

struct crew_spec {
    const struct agent_config *config;
    struct model *model;
    const struct secrets *secrets;
    struct keep *keep;
    int n; /* attempts, numbered from 1 */
};

/* Until all have ended, or ^C (sys/stop.h). Outcomes of all attempts, in the arena. */
MUST_USE
enum err_code crew_run(const struct crew_spec *spec, struct arena *a,
                       struct agent_outcome **ret_outcomes, struct err *err);

#endif
