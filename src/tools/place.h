/* tools/place.h -- a path of a model as a place in one of the session's two folders.
 *
 * The workspace may be read and written, the spill folder read. A path is taken apart by
 * us, and what is left is opened below the folder's descriptor with openat2, so that no
 * link leads out, whatever a command changes meanwhile. What is no regular file is not opened.
 */
#ifndef TOOLS_PLACE_H
#define TOOLS_PLACE_H

#include <stdint.h>
#include <sys/stat.h>

#include "core/arena.h"
#include "core/err.h"
#include "core/str.h"

#define PLACE_FILE_MAX ((size_t)20 << 20) /* bytes of a file that is read whole */

enum { FOLDER_WORKSPACE, FOLDER_SPILL, FOLDERS };

struct folder {
    int fd;             /* O_PATH; owned */
    const char *inside; /* as commands name it */
    const char *outside;
};

struct place {
    const struct folder *folder;
    const char *rel;  /* no "..", no empty part; "." for the folder itself */
    const char *name; /* for people and models: rel, or the whole path in the spill folder */
};

/* Relative paths are the workspace's. ERR_USAGE: outside, or too long. */
MUST_USE
enum err_code place_find(const struct folder folders[FOLDERS], struct arena *a, struct str path,
                         struct place *ret, struct err *err);

/* What is there, links followed as far as they stay inside; `ret->st_mode` 0: nothing. */
MUST_USE
enum err_code place_look(const struct place *p, struct stat *ret, struct err *err);

/* A regular file's descriptor for reading, owned by the caller. ERR_USAGE: it is none, and why. */
MUST_USE
enum err_code place_open(const struct place *p, int *ret_fd, struct stat *ret_st, struct err *err);

/* The whole of it; ERR_LIMIT past PLACE_FILE_MAX. */
MUST_USE
enum err_code place_read(const struct place *p, struct arena *a, struct str *ret,
                         struct stat *ret_st, struct err *err);

/* Beside it and renamed over it; folders on the way are made. Links are refused on the way and at
 * its end. The owner is the workspace's. */
MUST_USE
enum err_code place_write(const struct place *p, struct str bytes, mode_t mode, struct err *err);

/* Below a folder's descriptor; -1 with errno. flags: of open; beside them O_CLOEXEC is set.
 * links: whether symbolic links that stay inside are followed. */
int open_below(int dir_fd, const char *rel, int flags, bool links);

#endif
