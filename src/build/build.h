/* build/build.h -- candidate sources to a shared object, boxed and cached.
 *
 * The command line is fixed (docs/header.md has it); a first line `// ca: fast-math`
 * in a source adds the one flag that it may. Sources are regular files copied by
 * O_NOFOLLOW under a size cap; the builder's root holds the toolkit and the sources
 * only. A torch candidate becomes one object, too: its extension, with model_new.py in it as the
 * bytes ca_model_new; headers of torch come precompiled, objects are cached file by file
 * (docs/torch.md). The cache is keyed by the content of sources, flags, compiler and processor
 * or sm, and is written only here.
 */
#ifndef BUILD_BUILD_H
#define BUILD_BUILD_H

#include "core/arena.h"
#include "core/err.h"
#include "core/str.h"
#include "task/candidate.h"

struct toolchain {
    const char *gcc, *gxx; /* absolute, or NULL when absent */
    const char *nvcc;      /* absolute, or NULL when absent */
    const char *cuda_root; /* toolkit folder of nvcc, or NULL */
    char gcc_version[64], nvcc_version[64];
};

/* Look for compilers: gcc in PATH; nvcc in $CUDA_HOME/bin, PATH, /usr/local/cuda*, and
 * nvidia/cu13 or nvidia/cuda_nvcc of `python_site` (may be NULL). */
void toolchain_find(struct arena *a, const char *python_site, struct toolchain *ret);

/* nvcc is there and its release is CUDA_LEAST or later. */
#define CUDA_LEAST "12.4"
bool toolchain_cuda(const struct toolchain *t);

/* What a torch candidate is built against. */
struct torch_facts {
    const char *site;    /* site-packages that holds torch */
    const char *include; /* of the python */
    const char *version;
    bool cxx11_abi;
};

struct build_request {
    const struct candidate *candidate;
    const struct toolchain *tools;
    const char *cuda_arch;           /* "90a"; cuda only */
    int64_t wall_ms;                 /* limit for the whole build */
    const struct torch_facts *torch; /* for torch candidates; NULL: there is none */
};

struct build_result {
    bool ok;        /* false is the author's fault, not ours */
    bool timed_out; /* also the author's */
    bool forbidden; /* built, but wants a symbol or library off the list */
    bool cached;
    struct str log;      /* what the compilers said, cut; in the arena */
    const char *so_path; /* the shared object, in the cache; only when ok */
    char reason[256];    /* one line, when not ok: first error of the log, or a forbidden import */
    int64_t wall_ms;
};

/* ERR_MISSING when the compiler that the target needs is not here. */
MUST_USE
enum err_code build_run(struct arena *a, const struct build_request *req, struct build_result *ret,
                        struct err *err);

#endif
