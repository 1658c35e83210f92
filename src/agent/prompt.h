/* agent/prompt.h -- what the model is told at the start. Pure; in the arena. */
#ifndef AGENT_PROMPT_H
#define AGENT_PROMPT_H

#include "agent/agent.h"

/* Who it is, how it works, what the exam looks at, how it ends. */
struct str prompt_system(struct arena *a, const struct agent_config *c);

/* The first message: the task's text, the budget, the skill's whole text. */
struct str prompt_task(struct arena *a, const struct agent_config *c);

#endif
