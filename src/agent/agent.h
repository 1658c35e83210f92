/* agent/agent.h -- a language model at work on one task, in one or many attempts.
 *
 * agent_run() opens or takes up again OUT/attempt-1 ... N, runs all of them on the calling thread,
 * and leaves behind what docs/agent.md says. It never prints; who calls it is told through hooks,
 * on the same thread.
 *
 * Includes: core, sys, task, workspace, llm, tools. Threads: one.
 * Errors: ERR_CONFIG (endpoint, key), ERR_SYSTEM, ERR_STATE (another process works in the folder),
 * ERR_FORMAT (a log that is none). What a model or an endpoint does is a status, and so is what
 * goes wrong in one attempt while others go on.
 */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include "agent/budget.h"
#include "llm/llm.h"
#include "tools/tools.h"

struct episode;

/* One attempt, for hooks. Folders are absolute. */
struct agent_attempt {
    int number; /* from 1 */
    const char *dir, *workspace;
    bool resumed;            /* its log has events */
    struct episode *episode; /* for episode_eval(), episode_stop() */
    void *own;               /* the caller's, from prepare to release */
};

/* What a person may want to see; texts live until the next call. */
struct agent_status {
    int attempt;
    int64_t turn;
    double context_share; /* of the window */
    struct totals totals;
    double best_us; /* 0: no candidate with a time */
    int64_t best_milestone;
    const char *doing; /* "asking", "Bash", "waiting 12 s: rate", "ended: submitted" */
    int64_t doing_ms;
    struct str text; /* of the answer that comes, so far */
};

/* Each may be NULL but prepare. */
struct agent_hooks {
    void *ctx;
    /* Lay the workspace's files (the folder is there, and empty at first) and say with which tools
     * it is worked on. Called for new attempts and for those that are taken up again; *ret is
     * zeroed, its workspace is set. What it points to lives until release. */
    enum err_code (*prepare)(void *ctx, struct agent_attempt *a, struct tools_spec *ret,
                             struct err *err);
    /* The session is open; NULL: it is about to be closed. */
    void (*bind)(void *ctx, struct agent_attempt *a, struct tools *t);
    void (*release)(void *ctx, struct agent_attempt *a);  /* the session is closed */
    bool has_fd;                                          /* `fd` is watched with all others, */
    int fd;                                               /* and when it is readable */
    void (*pump)(void *ctx);                              /* this is called */
    void (*say)(void *ctx, const struct agent_status *s); /* at changes, and each 250 ms */
    void (*on_event)(void *ctx, int attempt, const json_t *event); /* after it was written */
};

/* Zero is a default where nothing else is said. Borrowed for the length of agent_run(). */
struct agent_config {
    const char *out; /* absolute */
    const char *task_name, *task_hash, *target, *contract;
    struct str task_text;                /* what the first message says; agent/prompt.h helps */
    struct str system;                   /* "": prompt_system() */
    const char *skill_name, *skill_hash; /* NULL: no skill */
    struct str skill_text;               /* stands in the first message, and is never shortened */

    const struct llm_spec *endpoint, *fallback; /* fallback: asked after two refusals; or NULL */
    const char *model_log;                      /* a recorded log answers in place of an endpoint */
    int64_t model_log_ms;                       /* how long its answers take */
    struct chat_sampling sampling;              /* max_tokens 0: 16,384 */
    struct budget budget;                       /* turns 0: 200 */
    struct prices prices;
    int64_t gate;   /* the milestone that ends an attempt; 0: it goes on until the model ends it */
    bool training;  /* what the model sees is never shortened: the window's end is the attempt's */
    bool unsynced;  /* the system may write to disk when it likes */
    int active_max; /* attempts that are open at a time; 0: all */
    const char *const *secret_env;  /* more variables that hold keys; NULL-terminated, or NULL */
    const char *const *secret_file; /* files that hold keys */
    const struct agent_hooks *hooks;
};

#define AGENT_TURNS BUDGET_TURNS_DEFAULT
#define AGENT_MAX_TOKENS 16384

/* How one attempt ended. In the arena. */
struct agent_outcome {
    int attempt;
    const char *status, *reason; /* docs/agent.md */
    struct totals totals;
    const json_t *best; /* its best `eval` event, or NULL; owned by the result */
};

struct agent_result {
    struct agent_outcome *attempt;
    int n;
    json_t *best; /* {"attempt", "candidate", "verdict"} of OUT/best, or NULL; owned */
    bool stopped; /* by ^C: can be taken up again */
};

MUST_USE
enum err_code agent_run(const struct agent_config *config, int n_attempts, struct arena *a,
                        struct agent_result *ret, struct err *err);
void agent_result_fini(struct agent_result *r);

/* A word of the person's for all attempts in OUT, also of another process: it is read before the
 * next request. */
MUST_USE
enum err_code agent_steer(const char *out, struct str text, struct err *err);

#endif
