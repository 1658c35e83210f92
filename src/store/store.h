/* store/store.h -- runs, verdicts, baselines in one SQLite file. docs/store.md has the schema.
 *
 * Text ids that sort by time, microseconds UTC, JSON as text. Several processes may
 * use one file (WAL, busy timeout). Errors: ERR_SYSTEM with SQLite's words,
 * ERR_FORMAT for a schema that this program does not know.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "core/arena.h"
#include "core/err.h"
#include "task/task.h"
#include "task/verdict.h"

struct store;

MUST_USE
enum err_code store_open(const char *path, struct store **ret, struct err *err);
void store_close(struct store *s); /* NULL is fine */

/* 26 characters, sorts by time: 48 bits of milliseconds and 80 random bits, base 32. */
void store_id(char ret[27]);

MUST_USE
enum err_code store_task_put(struct store *s, const struct task *t, struct err *err);
MUST_USE
enum err_code store_candidate_put(struct store *s, const struct candidate *c, const char *task_hash,
                                  struct err *err);
MUST_USE
enum err_code store_verdict_put(struct store *s, const struct verdict *v, struct err *err);

/* Times of one PyTorch arm, as JSON text; keyed by task, device and versions. */
struct baseline_key {
    const char *task_hash, *device, *versions, *arm;
};
MUST_USE
enum err_code store_baseline_put(struct store *s, const struct baseline_key *key, const char *json,
                                 struct err *err);
MUST_USE
enum err_code store_baseline_get(struct store *s, struct arena *a, const struct baseline_key *key,
                                 const char **ret_json,
                                 struct err *err); /* NULL when there is none */

/* A run of a command: state is "running", "done", "stopped" or "failed". */
MUST_USE
enum err_code store_run_put(struct store *s, const char *id, const char *command,
                            const char *config_json, const char *state, struct err *err);

#endif
