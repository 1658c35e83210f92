/* tools/tools_int.h -- what the files of this part share. */
#ifndef TOOLS_TOOLS_INT_H
#define TOOLS_TOOLS_INT_H

#include "task/candidate.h"
#include "tools/place.h"
#include "tools/tools.h"

#define SEEN_MAX 512 /* files whose contents are remembered; then the oldest is forgotten */
#define FROZEN_MAX 32
#define SPILLS_MAX 16                       /* files; then the oldest is removed */
#define SPILL_BYTES_MAX ((uint64_t)8 << 20) /* of one; what comes after is dropped */

/* A file as the model saw it last. */
struct seen {
    uint64_t path; /* hash of folder and rel */
    char hash[HASH_HEX];
};

struct frozen {
    const char *rel; /* the spec's */
    char hash[HASH_HEX];
};

struct shell;

struct tools {
    struct tools_spec spec;
    int rung;
    struct folder folder[FOLDERS];
    char *workspace, *scratch;       /* owned: real paths */
    char *cwd;                       /* owned: of the shell, as commands name it */
    bool scratch_made, scratch_ours; /* the folder; what lies in it */
    int scratch_lock;                /* owned: held for as long as the folder is in use */
    struct seen *seen;               /* owned */
    size_t n_seen, next_seen;
    struct frozen frozen[FROZEN_MAX];
    size_t n_frozen;
    json_t *todos;                         /* owned; NULL: none */
    struct shell *shell[TOOLS_SHELLS_MAX]; /* owned: in the background; NULL: free */
    int shells_started, spills;
    struct tool_call *call; /* that runs; NULL: none */
};

/* ---- session.c ---- */

/* "abc": as text of so many bytes at most for a message; "..." after a cut. In the arena. */
void hash_text(struct str text, char ret[HASH_HEX]);
void seen_put(struct tools *t, const struct place *p, struct str text);
/* ERR_USAGE: never read, or other than it was. */
MUST_USE
enum err_code seen_check(const struct tools *t, const struct place *p, struct str text,
                         struct err *err);
/* A place in the workspace that is not frozen. */
MUST_USE
enum err_code place_may_write(const struct tools *t, const struct place *p, struct err *err);
const char *frozen_copy(const struct tools *t, struct arena *a, size_t i);
/* A new file in the spill folder; *ret_name as models name it. The oldest goes when there are
 * many. -1: it could not be made. */
int spill_new(struct tools *t, struct arena *a, const char **ret_name);

/* ---- the rows ---- */
#define FILE_TOOLS 4
#define FIND_TOOLS 2
#define SHELL_TOOLS 3
extern const struct tool file_tools[FILE_TOOLS], find_tools[FIND_TOOLS], shell_tools[SHELL_TOOLS],
    todo_tool;

/* ---- todo.c ---- */
void todo_text(const struct tools *t, struct buf *b);

#endif
