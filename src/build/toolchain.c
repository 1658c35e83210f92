#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "build/build.h"
#include "core/own.h"
#include "sys/file.h"
#include "sys/proc.h"

static const char *runs(const char *path)
{
    return path != NULL && access(path, X_OK) == 0 ? path : NULL;
}

/* The toolkit's own nvcc, never a wrapper in PATH that happens to be found first. */
static const char *find_nvcc(struct arena *a, const char *python_site)
{
    const char *home = getenv("CUDA_HOME");
    const char *found = home ? runs(path_join(a, home, "bin/nvcc")) : NULL;
    if (found == NULL)
        found = runs("/usr/local/cuda/bin/nvcc");
    for (int major = 19; found == NULL && major >= 12; major--)
        for (int minor = 9; found == NULL && minor >= 0; minor--)
            found = runs(arena_fmt(a, "/usr/local/cuda-%d.%d/bin/nvcc", major, minor));
    if (found == NULL)
        found = proc_find(a, "nvcc");
    if (found == NULL && python_site != NULL)
        found = runs(path_join(a, python_site, "nvidia/cu13/bin/nvcc"));
    if (found == NULL && python_site != NULL)
        found = runs(path_join(a, python_site, "nvidia/cuda_nvcc/bin/nvcc"));
    return found;
}

static void version_of(const char *program, const char *after, char ret[64])
{
    own_arena tmp = { 0 };
    const char *argv[] = { program, "--version", NULL };
    struct proc_spec spec = { .argv = argv, .wall_ms = 10000, .out_max = 4096 };
    struct proc_result r;
    struct err err = { 0 };
    ret[0] = '\0';
    if (program == NULL || proc_run(&tmp, &spec, &r, &err) != OK || r.status != 0)
        return;
    const char *at = after ? strstr(r.out.ptr, after) : r.out.ptr;
    if (at == NULL)
        return;
    at += after ? strlen(after) : 0;
    size_t n = strcspn(at, "\n");
    snprintf(ret, 64, "%.*s", (int)(n < 63 ? n : 63), at);
}

bool toolchain_cuda(const struct toolchain *t)
{
    int have[2] = { 0 }, least[2] = { 0 };
    sscanf(CUDA_LEAST, "%d.%d", &least[0], &least[1]);
    if (t->nvcc == NULL || sscanf(t->nvcc_version, "%d.%d", &have[0], &have[1]) != 2)
        return false;
    return have[0] > least[0] || (have[0] == least[0] && have[1] >= least[1]);
}

void toolchain_find(struct arena *a, const char *python_site, struct toolchain *ret)
{
    *ret = (struct toolchain){ .gcc = proc_find(a, "gcc"),
                               .gxx = proc_find(a, "g++"),
                               .nvcc = find_nvcc(a, python_site) };
    if (ret->nvcc != NULL) {
        own_mem char *real = realpath(ret->nvcc, NULL);
        struct str path = str_from(real ? real : ret->nvcc);
        if (str_ends(path, S("/bin/nvcc")))
            path.len -= strlen("/bin/nvcc");
        ret->cuda_root = str_z(a, path);
        ret->nvcc = path_join(a, ret->cuda_root, "bin/nvcc");
        if (access(ret->nvcc, X_OK) != 0)
            ret->nvcc = ret->cuda_root = NULL;
    }
    version_of(ret->gcc, NULL, ret->gcc_version);
    version_of(ret->nvcc, "release ", ret->nvcc_version);
}
