/* agent/trace_exec.h -- the calls of an episode once more, in a fresh workspace.
 *
 * The files with which the workspace began are laid from the log's objects; then every call that
 * one of our tools answers (tools/tools.h) is made again, in its order, and what it says is
 * compared with what the model was told, durations and folders apart. The examiner's tools are
 * not ours to run and are passed over, by name.
 *
 * Includes: core, sys, tools. Errors: those of tools_open() and of the objects. What differs is
 * a result.
 */
#ifndef AGENT_TRACE_EXEC_H
#define AGENT_TRACE_EXEC_H

#include "agent/trace.h"

struct exec_counts {
    size_t same, differ, skipped;    /* calls */
    size_t files_same, files_differ; /* of the workspace at the ends of turns that changed some */
    bool from_nothing;               /* the log has no files from before the first turn */
};

/* `say`: one line each call that differs or is passed over, and each file; valid UTF-8, safe to
 * show. */
MUST_USE
enum err_code exec_run(const struct trace *t, void (*say)(const char *line),
                       struct exec_counts *ret, struct err *err);

/* Times, durations and dates as "T", folders that end in /workspace as /workspace: for comparing.
 * In the arena. */
struct str exec_normal(struct arena *a, struct str text);

#endif
