/* build/build_int.h -- what the files of this part share. */
#ifndef BUILD_BUILD_INT_H
#define BUILD_BUILD_INT_H

#include "build/build.h"
#include "sandbox/box.h"

#define ARGS_MAX (CANDIDATE_FILES_MAX + 64)
#define LOG_MAX ((size_t)256 << 10)

struct argv {
    const char *v[ARGS_MAX];
    size_t n;
};

/* ---- build.c ---- */
void arg(struct argv *a, const char *text);
bool build_is_source(const char *name);
bool build_mentions(const struct candidate *c, const char *word);
/* What -march=native means here: model and flags of the first processor. In the arena. */
MUST_USE
enum err_code build_processor(struct arena *a, struct str *ret, struct err *err);
/* One compiler in a box that sees DIR/src, DIR/pch and what it needs to read, and writes `out`. */
MUST_USE
enum err_code build_boxed(struct arena *a, const struct build_request *req, const char *dir,
                          const char *out, const struct argv *v, int64_t wall_ms,
                          struct box_output *ret, struct err *err);
/* Copy what a builder left: a regular file, never a link of its making. */
MUST_USE
enum err_code build_keep(struct arena *a, const char *built, const char *cached, struct err *err);

/* ---- torch.c ---- */

/* Sources and frozen files as the published work folder has them. */
MUST_USE
enum err_code torch_lay(struct arena *a, const struct candidate *c, const char *src,
                        struct err *err);
/* To DIR/out/candidate.so; what the compilers said is in *ret, of the first that failed. */
MUST_USE
enum err_code torch_compile(struct arena *a, const struct build_request *req, const char *dir,
                            struct box_output *ret, struct err *err);
/* Changes when flags or frozen files do: a part of every key. */
MUST_USE
enum err_code torch_identity(struct arena *a, char ret[HASH_HEX], struct err *err);

#endif
