/* agent/episode_int.h -- what the files of an episode share. */
#ifndef AGENT_EPISODE_INT_H
#define AGENT_EPISODE_INT_H

#include "agent/episode.h"
#include "agent/log.h"
#include "agent/snapshot.h"

struct episode {
    struct episode_spec spec;
    const struct agent_config *config;
    struct arena arena; /* of the whole episode */
    const char *objects, *steer_path, *tokens_path;
    struct agent_attempt attempt;
    bool prepared;
    struct tools_spec tools_spec;
    struct tools *tools;
    struct chat_tool *tool; /* as the log has them */
    size_t n_tools;
    struct budget budget;
    struct log log;
    struct transcript t;
    struct snapshot snapshot;
    enum episode_state state;
    int64_t mark_ms;  /* what came after it is not in the totals yet */
    int64_t since_ms; /* what is done now began */
    bool stop;
    bool dirty; /* something ran that may have changed files */

    /* Of the turn that is going on. */
    struct arena turn_arena;
    struct chat chat;
    struct chat_sampling sampling;
    struct tool_call *call; /* that runs; NULL: none */
    json_t *args;           /* its, owned */
};

/* Write an event, then apply it: the only way in which the state changes. Takes the reference. */
MUST_USE
enum err_code episode_put(struct episode *e, const char *name, json_t *body, struct err *err);
void episode_become(struct episode *e, enum episode_state state);

/* episode_next.c: one thing of those that are due between two turns. */
MUST_USE
enum err_code episode_next(struct episode *e, struct err *err);
MUST_USE
enum err_code episode_end(struct episode *e, const char *status, const char *reason,
                          struct err *err);
/* The totals with the turn that is going on. */
struct totals episode_totals(const struct episode *e);

/* episode_tools.c */
MUST_USE
enum err_code episode_tools_step(struct episode *e, struct err *err);
void episode_tools_drop(struct episode *e);

/* episode_turn.c: the answer, the end of a turn, the files */
MUST_USE
enum err_code episode_turn_end(struct episode *e, struct err *err);
/* Writes `fs` where files have changed; turn: -1 before the first. */
MUST_USE
enum err_code episode_files(struct episode *e, int64_t turn, struct err *err);

/* episode_session.c: what a new tools session is to know of the old one */
void episode_session_restore(struct episode *e);

#endif
