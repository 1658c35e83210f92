#include "app/python.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "sys/file.h"
#include "sys/proc.h"

/* Version of torch without importing it: that takes seconds. */
static const char probe[] =
    "import importlib.util as u, os, re\n"
    "s = u.find_spec('torch')\n"
    "t = open(os.path.join(os.path.dirname(s.origin), 'version.py')).read()\n"
    "v = re.search(r\"__version__ = '(\\d+)\\.(\\d+)\", t)\n"
    "raise SystemExit(0 if (int(v[1]), int(v[2])) >= (2, 4) else 3)\n";

static bool has_torch(struct arena *a, const char *python)
{
    const char *argv[] = { python, "-E", "-c", probe, NULL };
    struct proc_spec spec = { .argv = argv, .wall_ms = 60000, .out_max = 4096 };
    struct proc_result r;
    struct err ignored = { 0 };
    return proc_run(a, &spec, &r, &ignored) == OK && r.status == 0;
}

/* Of the environments in the home folder, the one that `make` finished or used last; a file
 * `complete` is the last thing it writes. */
static const char *own_venv(struct arena *a)
{
    const char *home = NULL, *best = NULL;
    struct err ignored = { 0 };
    struct timespec latest = { 0 };
    if (home_dir(a, &home, &ignored) != OK)
        return NULL;
    DIR *d = opendir(home);
    for (struct dirent *e = d ? readdir(d) : NULL; e != NULL; e = readdir(d)) {
        struct stat st;
        if (!str_starts(str_from(e->d_name), S("venv-")) ||
            stat(arena_fmt(a, "%s/%s/complete", home, e->d_name), &st) != 0)
            continue;
        if (best == NULL || st.st_mtim.tv_sec > latest.tv_sec ||
            (st.st_mtim.tv_sec == latest.tv_sec && st.st_mtim.tv_nsec > latest.tv_nsec)) {
            best = arena_fmt(a, "%s/%s/bin/python3", home, e->d_name);
            latest = st.st_mtim;
        }
    }
    if (d != NULL)
        closedir(d);
    return best;
}

static enum err_code missing(const char *what, struct err *err)
{
    err_raise(err, ERR_MISSING, "%s", what);
    return err_hint(err,
                    "'make' in the source tree makes one with PyTorch; or 'pip install torch' and "
                    "name that python by --python");
}

enum err_code python_find(struct arena *a, struct str wanted, const char **ret, struct err *err)
{
    const char *env = getenv("CUDA_AGENT_PYTHON"), *venv = getenv("VIRTUAL_ENV");
    const char *must = wanted.len > 0 ? str_z(a, wanted) : env && env[0] ? env : NULL;
    if (must != NULL) {
        const char *path = proc_find(a, must);
        if (path == NULL || !has_torch(a, path))
            return missing(arena_fmt(a, "'%s' is no python with torch 2.4 or later", must), err);
        *ret = path_absolute(a, path);
        return OK;
    }
    const char *tries[] = { venv && venv[0] ? path_join(a, venv, "bin/python3") : NULL, own_venv(a),
                            proc_find(a, "python3") };
    for (size_t i = 0; i < COUNT(tries); i++)
        if (tries[i] != NULL && path_exists(tries[i]) && has_torch(a, tries[i])) {
            *ret = path_absolute(a, tries[i]);
            return OK;
        }
    return missing("no python with torch 2.4 or later", err);
}
