/* What a box owns: its uid, its writable folders, and below rung 1 the folder that is its /tmp. */
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/own.h"
#include "sandbox/box_int.h"
#include "sys/file.h"

#define UID_BASE 20000 /* below 65536, so that root of a container has them, too */
#define UID_SPAN 10000
#define NAME_HEAD "cuda-agent-box-"

uid_t own_uid(const struct box_spec *spec)
{
    static unsigned serial;
    uid_t low = UID_BASE + (uid_t)spec->role * UID_SPAN;
    struct stat st;
    if (geteuid() != 0)
        return getuid();
    /* What earlier boxes left in a folder that is kept stays writable. */
    for (size_t i = 0; i < spec->n_mounts; i++)
        if (spec->mounts[i].writable && stat(spec->mounts[i].from, &st) == 0 && st.st_uid >= low &&
            st.st_uid < low + UID_SPAN)
            return st.st_uid;
    return low + ((unsigned)getpid() * 31u + serial++ * 7u) % UID_SPAN;
}

static _Thread_local uid_t giving;
static _Thread_local int64_t adding;

static int give(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)kind, (void)at;
    return st->st_uid == giving ? 0 : lchown(path, giving, giving);
}

enum err_code own_folders(const struct box_spec *spec, uid_t uid, struct err *err)
{
    giving = uid;
    for (size_t i = 0; i < spec->n_mounts && geteuid() == 0; i++) {
        const struct box_mount *m = &spec->mounts[i];
        struct stat st;
        if (!m->writable || (m->optional && !path_exists(m->from)))
            continue;
        if (stat(m->from, &st) != 0)
            return err_sys(err, "find '%s'", m->from);
        if (st.st_uid != uid && nftw(m->from, give, 16, FTW_PHYS | FTW_MOUNT) != 0)
            return err_sys(err, "give '%s' to a box", m->from);
    }
    return OK;
}

static int add(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)path, (void)kind, (void)at;
    adding += (int64_t)st->st_blocks * 512;
    return 0;
}

int64_t folder_bytes(const char *dir)
{
    adding = 0;
    nftw(dir, add, 16, FTW_PHYS | FTW_MOUNT); /* what vanishes meanwhile takes no room */
    return adding;
}

/* A box may leave folders that it closed to itself. */
static int open_up(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)at;
    return kind == FTW_DNR || (kind == FTW_D && (st->st_mode & 0700) != 0700) ? chmod(path, 0700)
                                                                              : 0;
}

void own_tmp_remove(char *dir)
{
    struct err ignored = { 0 };
    if (dir[0] != '\0' && dir_remove(dir, &ignored) != OK) {
        nftw(dir, open_up, 16, FTW_PHYS | FTW_MOUNT);
        if (dir_remove(dir, &ignored) != OK)
            ignored = (struct err){ 0 }; /* swept by a later starter */
    }
    dir[0] = '\0';
}

static const char *tmp_root(void)
{
    const char *dir = getenv("TMPDIR");
    return dir != NULL && dir[0] == '/' && strlen(dir) < 32 ? dir : "/tmp";
}

/* The name holds the starter's pid. */
static void sweep(void)
{
    static bool swept;
    DIR *d = swept ? NULL : opendir(tmp_root());
    swept = true;
    for (struct dirent *e = d ? readdir(d) : NULL; e != NULL; e = readdir(d)) {
        char path[300];
        struct stat st;
        if (strncmp(e->d_name, NAME_HEAD, strlen(NAME_HEAD)) != 0)
            continue;
        struct str rest = str_drop(str_from(e->d_name), strlen(NAME_HEAD)), pid = { 0 };
        int64_t owner = 0;
        struct err ignored = { 0 };
        snprintf(path, sizeof path, "%s/%s", tmp_root(), e->d_name);
        bool ours = str_cut(&rest, '-', &pid) &&
                    str_int(pid, 1, INT32_MAX, &owner, &ignored) == OK && lstat(path, &st) == 0 &&
                    S_ISDIR(st.st_mode) && (geteuid() == 0 || st.st_uid == geteuid());
        if (ours && kill((pid_t)owner, 0) != 0 && errno == ESRCH)
            own_tmp_remove(path);
    }
    if (d != NULL)
        closedir(d);
}

enum err_code own_tmp(uid_t uid, char *ret, size_t room, struct err *err)
{
    sweep();
    snprintf(ret, room, "%s/" NAME_HEAD "%d-XXXXXX", tmp_root(), (int)getpid());
    if (mkdtemp(ret) == NULL) {
        ret[0] = '\0';
        err_sys(err, "make a folder for a box in '%s'", tmp_root());
        return err_hint(err, "set TMPDIR to a folder that may be written");
    }
    if (geteuid() == 0 && chown(ret, uid, uid) != 0)
        return err_sys(err, "give '%s' to a box", ret);
    return OK;
}
