/* agent/snapshot.h -- the files of a workspace as a tree of hashes, and back.
 *
 * Contents go to objects/ (agent/objects.h). Left out, and named in `skipped`: files of more than
 * 1 MiB, folders whose names begin with a dot, __pycache__, links, what comes after 4,096 files or
 * 16 folders down. A restored workspace has the tree's files and of the others only those that a
 * snapshot leaves out; empty folders stay.
 *
 * Files that did not change since the last look (inode, size, both times) are not read again.
 *
 * Includes: core, sys, tools (places). Errors: ERR_SYSTEM, ERR_FORMAT (a tree that is none).
 */
#ifndef AGENT_SNAPSHOT_H
#define AGENT_SNAPSHOT_H

#include <jansson.h>

#include "agent/objects.h"

#define SNAPSHOT_FILE_MAX ((size_t)1 << 20)
#define SNAPSHOT_FILES_MAX 4096
#define SNAPSHOT_DEPTH_MAX 16

struct snapshot_file;

/* What was found at the last look. {0} is a snapshot of nothing. */
struct snapshot {
    struct snapshot_file *file; /* owned; sorted by path */
    size_t n, cap;
    char tree[SHA256_HEX]; /* "" before the first look */
};

void snapshot_fini(struct snapshot *s);

/* Look again. *ret: {"tree", "files": [{"path", "hash", "size", "mode"}], "skipped"?}, a new
 * reference; NULL when the tree is the same as at the last look. */
MUST_USE
enum err_code snapshot_take(struct snapshot *s, const char *workspace, const char *objects,
                            json_t **ret, struct err *err);

/* Make the workspace hold `files`. */
MUST_USE
enum err_code snapshot_restore(const char *workspace, const char *objects, const json_t *files,
                               struct err *err);

#endif
