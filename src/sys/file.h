/* sys/file.h -- whole files and folders.
 *
 * Errors: ERR_SYSTEM with the path, ERR_LIMIT past a stated size.
 */
#ifndef SYS_FILE_H
#define SYS_FILE_H

#include <stdbool.h>
#include <sys/types.h>

#include "core/arena.h"
#include "core/err.h"
#include "core/str.h"

/* Whole contents into the arena, NUL-terminated. Follows symbolic links. */
MUST_USE
enum err_code file_read(struct arena *a, const char *path, size_t max_bytes, struct str *ret,
                        struct err *err);

/* A copy in memory that nobody can change, for who must not get at the file: with the file's own
 * descriptor a process of the same user could open it again for writing. Owned by the caller. */
MUST_USE
enum err_code file_sealed(const char *path, int *ret_fd, struct err *err);

/* Write beside the path and rename over it: never half a file. */
MUST_USE
enum err_code file_write(const char *path, struct str bytes, mode_t mode, struct err *err);

MUST_USE
enum err_code dir_make(const char *path, mode_t mode, struct err *err); /* mkdir -p */
MUST_USE
enum err_code dir_remove(const char *path, struct err *err); /* rm -r, stays inside */
MUST_USE
enum err_code dir_temp(struct arena *a, const char *parent, const char *prefix, const char **ret,
                       struct err *err);

/* Regular files directly in `path` whose names end in one of the NULL-terminated
 * `endings` (NULL: all), sorted; symbolic links and other kinds are left out. */
MUST_USE
enum err_code dir_list(struct arena *a, const char *path, const char *const *endings,
                       struct str **ret, size_t *ret_n, struct err *err);

bool path_exists(const char *path);
const char *path_join(struct arena *a, const char *dir, const char *name);
const char *path_absolute(struct arena *a, const char *path); /* against the working directory */

/* The mode of folders that are ours: closed; root's can be passed, by boxes with uids of their own.
 */
mode_t dir_mode(void);

/* Where this product keeps things between runs: $CUDA_AGENT_HOME, else
 * $XDG_CACHE_HOME/cuda-agent, else ~/.cache/cuda-agent. Made on demand with dir_mode(). */
MUST_USE
enum err_code home_dir(struct arena *a, const char **ret, struct err *err);

/* The folder with the product's own data (py/, include/, skills/): beside the
 * running program (PROGRAM/../share/cuda-agent), else the source tree it was built in. */
MUST_USE
enum err_code share_dir(struct arena *a, const char **ret, struct err *err);

/* Folder of the running program: ca-runner and libca_device.so lie beside it. */
MUST_USE
enum err_code program_dir(struct arena *a, const char **ret, struct err *err);

#endif
