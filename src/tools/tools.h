/* tools/tools.h -- the tools of one episode: what an agent can do in one workspace folder.
 *
 * Names and parameters are Claude Code's: Bash, BashOutput, KillShell, Read, Write, Edit,
 * MultiEdit, Glob, Grep, TodoWrite; rows of others come beside them (tools/tool.h). A session
 * is one episode's: which files the model has read and what they held then, the list of what
 * is to be done, the shell's folder, its background commands, its spill folder. It is small
 * (tens of KiB) while nothing runs.
 *
 * Files: nothing is opened outside the workspace and the spill folder, by no path and no
 * link. Commands run in a box (sandbox/box.h): no network, no GPU; all of it ends with the
 * session. Frozen files are mounted read-only over themselves; where the machine gives no
 * mounts they are put back after each command that changed them, and the model is told.
 *
 * Includes: core, sys, task, sandbox. Threads: one at a time per session; one thread may
 * serve thousands of sessions through tool_call_begin() and poll().
 * Errors: tools_open() alone raises (ERR_SYSTEM, ERR_STATE, ERR_USAGE, ERR_MISSING). What a
 * call refuses is its result.
 */
#ifndef TOOLS_TOOLS_H
#define TOOLS_TOOLS_H

#include "sandbox/box.h"
#include "tools/tool.h"

/* Borrowed until tools_close(), with all that it points to. */
struct tools_spec {
    const char *workspace;     /* a folder that exists; the box's uid comes to own it */
    const char *scratch;       /* an empty folder of the session's own, outside the workspace; NULL:
                                  one is made, and removed with the session */
    const char *const *frozen; /* NULL-terminated, relative to the workspace; NULL: none */
    const struct tool_set *set; /* more rows; their names must be new */
    size_t n_sets;
    const struct box_mount *mounts; /* more that commands see (toolkits) */
    size_t n_mounts;
    const char *const *env; /* more of the commands' environment; NULL: nothing */
    int64_t mem_bytes;      /* of one command with all it starts; 0: 4 GiB */
    int64_t file_bytes;     /* largest file a command may write; 0: 1 GiB */
    int tasks_max;          /* processes and threads of a command; 0: 256 */
    int cpus_max;           /* processors of a command; 0: all */
};

struct tools;

MUST_USE
enum err_code tools_open(const struct tools_spec *spec, struct tools **ret, struct err *err);
/* Ends every command and the call that runs, removes what the session made for itself. NULL is
 * fine. */
void tools_close(struct tools *t);

/* All rows, the built-in ones first; owned by the caller. */
json_t *tools_schema(const struct tools *t, enum tool_shape shape);
const struct tool *tools_find(const struct tools *t, struct str name); /* NULL is normal */
/* The built-in rows, without a session, for tables and schemas. Returns their number. */
#define TOOLS_BUILTIN 10
size_t tools_builtin(struct tool ret[TOOLS_BUILTIN]);

struct tool_result {
    struct str text; /* valid UTF-8; in the arena of the call */
    bool failed;
};

/* Run one call to its end. `args`: an object; anything else is refused in the result. */
struct tool_result tools_call(struct tools *t, struct arena *a, struct str name,
                              const json_t *args);
/* The same from JSON text; empty text is no arguments. */
struct tool_result tools_call_text(struct tools *t, struct arena *a, struct str name,
                                   struct str args);

/* The same in steps. Between them: poll what tool_call_fds() names until tool_call_until(), then
 * tool_call_step(); when tool_call_done(), take the result. A session has one call at a time; a
 * second one is refused in its result. `args` and the arena, which the call lives in, must outlive
 * it. Never NULL. */
struct tool_call *tool_call_begin(struct tools *t, struct arena *a, struct str name,
                                  const json_t *args);
bool tool_call_done(const struct tool_call *c);
size_t tool_call_fds(const struct tool_call *c, struct pollfd ret[TOOL_CALL_FDS]);
int64_t tool_call_until(const struct tool_call *c);    /* of clock_ms(); INT64_MAX: no limit */
void tool_call_step(struct tool_call *c);              /* does not wait */
struct tool_result tool_call_end(struct tool_call *c); /* ends what is not done */

/* Background commands write into pipes that are emptied during calls, and here: call it when one
 * of the descriptors is readable. A command whose pipe is full waits. */
#define TOOLS_SHELLS_MAX 8
size_t tools_fds(const struct tools *t, struct pollfd ret[2 * TOOLS_SHELLS_MAX]);
void tools_pump(struct tools *t);
/* Background commands that run: while one does, nothing should be measured. */
size_t tools_running(const struct tools *t);

/* For a turn after the context was cut: the list of what is to be done and the background
 * commands, or "" when there is neither. In the arena. */
struct str tools_reminder(const struct tools *t, struct arena *a);
const char *tools_folder(const struct tools *t); /* the workspace as commands and paths name it */

/* After somebody else has put files into the workspace: as root, what root owns in it comes to
 * belong to the workspace's owner, the box's uid, so that commands can write it. No links are
 * followed; hard links are left out. Else a no-op. */
void tools_adopt(const struct tools *t);

/* Are the frozen files as they were? Puts back what is not, and says which (ERR_STATE). */
MUST_USE
enum err_code tools_frozen_check(struct tools *t, struct err *err);

#endif
