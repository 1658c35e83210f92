/* agent/episode.h -- one attempt as a machine of small steps that never wait.
 *
 *      NEXT -> ASK -> ANSWER -> TOOLS -> TURN -> NEXT ... -> ENDED
 *
 * Who drives it (agent/crew.h) looks at what it waits for: nothing (episode_step), the model
 * (episode_ask, episode_answer), descriptors or a time (episode_fds, episode_until).
 *
 * Includes: all of the part's lower files. Errors: ERR_SYSTEM, ERR_STATE, ERR_FORMAT; the episode
 * can then only be closed, and taken up again later.
 */
#ifndef AGENT_EPISODE_H
#define AGENT_EPISODE_H

#include "agent/agent.h"
#include "agent/keep.h"
#include "agent/model.h"
#include "agent/redact.h"
#include "agent/transcript.h"
#include "task/candidate.h"

enum episode_state {
    EPISODE_NEXT,   /* between two turns: step */
    EPISODE_ASK,    /* a request is written: ask the model */
    EPISODE_ANSWER, /* the model was asked */
    EPISODE_TOOLS,  /* calls are carried out: step when a descriptor or the time says so */
    EPISODE_TURN,   /* all of the turn is there: step */
    EPISODE_ENDED
};

#define EPISODE_FDS (TOOL_CALL_FDS + 2 * TOOLS_SHELLS_MAX)

/* All borrowed until episode_close(). */
struct episode_spec {
    const struct agent_config *config;
    int number;
    const struct secrets *secrets;
    struct keep *keep;
    bool has_fallback;
};

/* Begin, or go on: the turn that was going on is dropped, and the workspace is as it was before
 * it. */
MUST_USE
enum err_code episode_open(const struct episode_spec *spec, struct episode **ret, struct err *err);
void episode_close(struct episode *e);

enum episode_state episode_state(const struct episode *e);
MUST_USE
enum err_code episode_step(struct episode *e, struct err *err);

/* EPISODE_ASK: what to ask; then it waits for the answer. */
void episode_ask(struct episode *e, struct model_ask *ret);
MUST_USE
enum err_code episode_answer(struct episode *e, const struct llm_outcome *outcome, struct err *err);

/* What EPISODE_TOOLS waits for. Background commands are among it, in every state. */
size_t episode_fds(const struct episode *e, struct pollfd ret[EPISODE_FDS]);
bool episode_waits(const struct episode *e);    /* a call runs: for a descriptor, or the time */
int64_t episode_until(const struct episode *e); /* of clock_ms(); INT64_MAX: no time */
void episode_pump(struct episode *e);           /* a background command has said something */

/* End soon, so that it can be taken up again: a tool that runs is stopped, and the turn ended. An
 * answer that is awaited is to be cancelled by who drives. */
void episode_stop(struct episode *e);

/* Say in the log what has gone wrong, if it can be written, and that the attempt ends for it. */
void episode_fail(struct episode *e, const struct err *why);

/* A word of the person's, kept in the attempt's folder until the next request. */
MUST_USE
enum err_code episode_steer(const struct episode *e, struct str text, struct err *err);

/* The examiner answered: {"step", "candidate", "verdict", "idea"?, "best"?, "files": [{"path",
 * "text"}]}, paths as in the workspace. Takes the reference. The files are kept and OUT/best is
 * made anew before it returns. `best` false: it cannot be the best, whatever its time (a quick
 * look). On the episode's thread, from a tool of its or from `pump`. */
MUST_USE
enum err_code episode_eval(struct episode *e, json_t *eval, struct err *err);

/* The same from plain data. Borrowed. */
struct episode_verdict {
    const char *step; /* "compile", "verify", "profile", "tune" */
    const struct candidate *candidate;
    const json_t *verdict; /* docs/verdict.md */
    const char *idea;      /* NULL: none */
    bool may_be_best;
};
MUST_USE
enum err_code episode_judged(struct episode *e, const struct episode_verdict *v, struct err *err);

const struct transcript *episode_transcript(const struct episode *e);
struct agent_status episode_status(const struct episode *e);
int episode_number(const struct episode *e);

#endif
