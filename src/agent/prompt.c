#include "agent/prompt.h"

#define PROMPT_MAX ((size_t)2 << 20)

static const char role[] =
    "You write GPU and CPU kernels. You are given a PyTorch model and a workspace folder; you make "
    "its forward pass as fast as you can without changing what it computes. You work alone, by "
    "calling tools; nobody reads your words in between, and nobody answers questions.\n";

static const char steps[] =
    "\n## How to work\n"
    "1. Understand. Read the task and the README of the workspace. Find out what bounds the task: "
    "the bytes that must move, or the arithmetic.\n"
    "2. Make it right. Write the simplest implementation that can pass, and verify it. Only a "
    "verified candidate counts.\n"
    "3. Make it fast. Profile, change one thing at a time, verify, profile again. Say what you "
    "expect from a change before you measure it, and keep what a measurement confirms. Go for what "
    "costs most: move each byte once, fuse what touches the same data, use tensor cores where the "
    "tolerance allows it, and only then tune sizes.\n"
    "4. Stop when measurements stop improving or the floor is near, then call submit. The best "
    "verified candidate of the attempt counts, not the last one: it is kept for you.\n";

static const char contract[] =
    "\n## The contract\n"
    "- Frozen files cannot be changed; write only where the README says.\n"
    "- The examiner builds your files itself and runs them in a box without a network. What you "
    "build or run with Bash is for you alone, and Bash has no GPU: compile, verify and profile are "
    "how you reach one.\n"
    "- Outputs are compared element by element with a reference in float64, on inputs and weights "
    "that you have not seen, several times.\n"
    "\n## What the exam refuses\n"
    "Answers that were not computed: results kept from earlier calls, work skipped for special "
    "inputs, the reference's own operators behind another name, work on other streams or threads "
    "that outlives the call, anything that looks for the examiner, its clock or its buffers. "
    "Such candidates are found and count as wrong. Lower precision than the tolerance allows is "
    "wrong, too. If the task cannot be made faster honestly, say so and submit the best you "
    "have.\n";

static const char habits[] =
    "\n## Habits\n"
    "- Prefer Edit to writing whole files again. Read a file before you change it.\n"
    "- Several calls can stand in one answer; they are carried out in their order.\n"
    "- Old results are shortened when the conversation gets long. Write what you must remember "
    "into the notes tool or a file.\n"
    "- An answer without a call is taken as the wish to end.\n";

static void skill_mention(struct buf *b, const struct agent_config *c)
{
    if (c->skill_name == NULL)
        return;
    buf_addf(
        b,
        "\n## Skills\nAvailable: %s. Its text stands at the end of the first message and stays "
        "there; follow it where it fits the task.\n",
        c->skill_name);
}

struct str prompt_system(struct arena *a, const struct agent_config *c)
{
    struct buf b = { .arena = a, .max = PROMPT_MAX };
    if (c->system.len > 0)
        return c->system;
    buf_addz(&b, role);
    buf_addz(&b, steps);
    buf_addz(&b, contract);
    buf_addz(&b, habits);
    skill_mention(&b, c);
    return (struct str){ b.ptr, b.len };
}

static void budget_tell(struct buf *b, const struct budget *budget)
{
    buf_addz(b, "\n\n## Budget\n");
    buf_addf(b, "- %lld turns; a turn is one answer of yours with its calls.\n",
             (long long)(budget->turns > 0 ? budget->turns : AGENT_TURNS));
    if (budget->seconds > 0)
        buf_addf(b, "- %.0f minutes of work.\n", budget->seconds / 60);
    if (budget->tokens > 0)
        buf_addf(b, "- %lld tokens, read and written.\n", (long long)budget->tokens);
    buf_addf(b, "- The conversation has %lld tokens of room.\n", (long long)budget_window(budget));
    buf_addz(b, "When the budget ends, the best verified candidate counts.\n");
}

struct str prompt_task(struct arena *a, const struct agent_config *c)
{
    struct buf b = { .arena = a, .max = PROMPT_MAX };
    if (c->task_name != NULL)
        buf_addf(&b, "# Task: %s (target %s, contract %s)\n\n", c->task_name,
                 c->target ? c->target : "cuda", c->contract ? c->contract : "native");
    buf_add(&b, str_trim(c->task_text));
    budget_tell(&b, &c->budget);
    if (c->skill_name != NULL) {
        buf_addf(&b, "\n<skill name=\"%s\">\n", c->skill_name);
        buf_add(&b, str_trim(c->skill_text));
        buf_addz(&b, "\n</skill>\n");
    }
    return (struct str){ b.ptr, b.len };
}
