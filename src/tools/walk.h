/* tools/walk.h -- the files below a place, bounded in number and time.
 *
 * Links are not followed and .git is left out; so is what is neither file nor folder.
 */
#ifndef TOOLS_WALK_H
#define TOOLS_WALK_H

#include "tools/place.h"

#define WALK_ENTRIES_MAX 100000
#define WALK_DEPTH_MAX 40
#define WALK_MS 10000

struct found {
    const char *rel;   /* from the folder's root */
    const char *below; /* the same from where the walk began */
    int64_t mtime_ns, bytes;
};

struct walk {
    struct found *file; /* newest first; equal times by name */
    size_t n;
    bool cut; /* there are more */
    int64_t until_ms;
};

/* `from` may be a file: then it is the only one. In the arena. ERR_USAGE: there is no such place.
 */
MUST_USE
enum err_code walk_files(const struct place *from, struct arena *a, struct walk *ret,
                         struct err *err);

/* What root owns below the folder (opened for reading; taken over) goes to that owner: folders, and
 * files of one link. */
void walk_give(int dir_fd, uid_t uid, gid_t gid);

#endif
