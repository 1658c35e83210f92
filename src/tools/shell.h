/* tools/shell.h -- one command of a model in its box. */
#ifndef TOOLS_SHELL_H
#define TOOLS_SHELL_H

#include "tools/gather.h"
#include "tools/tools_int.h"

#define BASH_MS 120000
#define BASH_MS_MAX 600000
#define BACKGROUND_MS 3600000

struct shell {
    int serial;      /* bash_1, ... */
    char *command;   /* owned; its start, for lists */
    struct box *box; /* owned; NULL: ended, and `result` says how */
    int out;         /* owned: read end of its output */
    int64_t started_ms, until_ms;
    struct box_result result;
    char *failure; /* owned; NULL: none. Why it could not be waited for */
    bool told;     /* BashOutput has told of the end */
    bool background;
    struct ring ring;     /* in the background */
    struct gather gather; /* else */
};

/* Start `command` in a box. Owned by the caller. ERR_SYSTEM, ERR_MISSING, ERR_STATE. */
MUST_USE
enum err_code shell_start(struct tools *t, struct arena *a, struct str command, bool background,
                          struct shell **ret, struct err *err);
/* Take what it has written; once it has ended, or its time is up, make an end of it: box NULL.
 * Does not wait for output. */
void shell_pump(struct shell *s);
void shell_kill(struct shell *s); /* BOX_TIMED_OUT stands for it */
void shell_free(struct shell *s); /* kills; NULL is fine */

/* "exit code 1", "timed out after 3.0 s", ... */
void shell_ending(const struct shell *s, struct buf *b);

/* Where the last foreground command ended: becomes the session's folder when it lies in the
 * workspace. True: it has changed. */
bool shell_cwd(struct tools *t);

void shells_end(struct tools *t); /* all of the background */

/* rm -r of what commands may have closed to us. */
MUST_USE
enum err_code shell_remove(const char *path, struct err *err);

#endif
